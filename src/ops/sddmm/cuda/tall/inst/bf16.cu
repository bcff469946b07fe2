// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/sddmm/cuda/tall/kernel.cuh"

namespace tessera::ops {

template struct TallDotsKernels<Precision::bf16>;

}  // namespace tessera::ops
