// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/kernel.cuh"

namespace tessera::ops {

template struct EdgesKernels<EdgesKey{Precision::fp32, false}>;

}  // namespace tessera::ops
