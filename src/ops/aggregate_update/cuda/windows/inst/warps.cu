// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/kernel.cuh"

namespace tessera::ops {

template struct WindowUpdateKernels<WindowUpdateKey{64, 64, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 32, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 32, false, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 64, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 32, true, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 32, true, false, true}>;

}  // namespace tessera::ops
