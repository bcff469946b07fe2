// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/fused/kernel.cuh"

namespace tessera::ops {

template struct UpdateKernels<UpdateKey{Precision::fp32, 32}>;
template struct UpdateKernels<UpdateKey{Precision::fp32, 64}>;
template struct UpdateKernels<UpdateKey{Precision::fp32, 96}>;
template struct UpdateKernels<UpdateKey{Precision::fp32, 128}>;

}  // namespace tessera::ops
