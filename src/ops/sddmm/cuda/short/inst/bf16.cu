// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/sddmm/cuda/short/kernel.cuh"

namespace tessera::ops {

template struct ShortDotsKernels<ShortDotsKey{Precision::bf16, false}>;
template struct ShortDotsKernels<ShortDotsKey{Precision::bf16, true}>;

}  // namespace tessera::ops
