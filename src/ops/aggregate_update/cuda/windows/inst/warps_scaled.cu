// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/kernel.cuh"

namespace tessera::ops {

template struct WindowUpdateKernels<WindowUpdateKey{64, 64, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 96, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 128, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 64, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 96, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 128, true, false, true}>;

}  // namespace tessera::ops
