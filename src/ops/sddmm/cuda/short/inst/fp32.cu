// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/short/kernel.cuh"

namespace tessera::ops {

template struct ShortDotsKernels<ShortDotsKey{Precision::fp32, false}>;
template struct ShortDotsKernels<ShortDotsKey{Precision::fp32, true}>;

}  // namespace tessera::ops
