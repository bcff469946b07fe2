// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/sddmm/cuda/lists/kernel.cuh"

namespace tessera::ops {

template struct ListKernel<Precision::bf16>;

}  // namespace tessera::ops
