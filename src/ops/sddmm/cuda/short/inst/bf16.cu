// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/kernel.cuh"

namespace tessera::ops {

template struct ShortDotsKernels<ShortDotsKey{Precision::bf16, false}>;
template struct ShortDotsKernels<ShortDotsKey{Precision::bf16, true}>;

}  // namespace tessera::ops
