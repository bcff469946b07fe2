// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/attention/kernel.hpp"

/// The CUDA kernels of attention. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_rows_attention(std::vector<AttentionKernel>& table);
void append_cuda_fused_attention(std::vector<AttentionKernel>& table);
void append_cuda_staged_attention(std::vector<AttentionKernel>& table);

}  // namespace tessera::ops
