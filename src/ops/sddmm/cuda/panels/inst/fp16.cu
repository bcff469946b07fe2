// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/panels/kernel.cuh"

namespace tessera::ops {

template struct PanelsKernels<Precision::fp16>;

}  // namespace tessera::ops
