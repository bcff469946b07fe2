// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/kernel.cuh"

namespace tessera::ops {

template struct ListKernels<Precision::bf16>;

}  // namespace tessera::ops
