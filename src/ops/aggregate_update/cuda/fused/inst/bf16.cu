// SPDX-License-Identifier: Apache-2.0
// Also for: fp32
#include "ops/aggregate_update/cuda/fused/kernel.cuh"

namespace tessera::ops {

template struct UpdateKernels<UpdateKey{Precision::bf16, 32}>;
template struct UpdateKernels<UpdateKey{Precision::bf16, 64}>;
template struct UpdateKernels<UpdateKey{Precision::bf16, 96}>;
template struct UpdateKernels<UpdateKey{Precision::bf16, 128}>;

}  // namespace tessera::ops
