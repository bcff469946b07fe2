// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/edge_softmax/kernel.hpp"

/// The CUDA kernels of edge_softmax. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_edge_softmax_kernels(std::vector<EdgeSoftmaxKernel>& table);

}  // namespace tessera::ops
