// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/kernel.cuh"

namespace tessera::ops {

template struct WindowUpdateKernels<WindowUpdateKey{64, 64, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 96, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 128, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 64, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 96, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 128, false, false, true}>;

}  // namespace tessera::ops
