// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/kernel.cuh"

namespace tessera::ops {

template struct TallDotsKernels<TallDotsKey{Precision::fp16, true}>;

}  // namespace tessera::ops
