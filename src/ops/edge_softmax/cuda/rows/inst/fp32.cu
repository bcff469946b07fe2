// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/kernel.cuh"

namespace tessera::ops {

template struct SoftmaxKernels<SoftmaxKey{Precision::fp32, false}>;
template struct SoftmaxKernels<SoftmaxKey{Precision::fp32, true}>;

}  // namespace tessera::ops
