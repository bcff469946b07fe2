// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/kernel.cuh"

namespace tessera::ops {

template struct WindowUpdateKernels<WindowUpdateKey{64, 64, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 32, false, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 64}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 32}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 32}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 64, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{64, 32, true}>;
template struct WindowUpdateKernels<WindowUpdateKey{128, 32, true}>;

}  // namespace tessera::ops
