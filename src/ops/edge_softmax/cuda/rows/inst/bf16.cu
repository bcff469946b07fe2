// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/edge_softmax/cuda/rows/kernel.cuh"

namespace tessera::ops {

template struct SoftmaxKernels<SoftmaxKey{Precision::bf16, false}>;
template struct SoftmaxKernels<SoftmaxKey{Precision::bf16, true}>;

}  // namespace tessera::ops
