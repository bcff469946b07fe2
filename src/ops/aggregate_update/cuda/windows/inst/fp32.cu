// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/kernel.cuh"

namespace tessera::ops {

template struct WindowUpdateKernels<WindowUpdateKey{Precision::fp32, 64, 64}>;
template struct WindowUpdateKernels<WindowUpdateKey{Precision::fp32, 64, 96}>;
template struct WindowUpdateKernels<WindowUpdateKey{Precision::fp32, 64, 128}>;
template struct WindowUpdateKernels<WindowUpdateKey{Precision::fp32, 128, 64}>;
template struct WindowUpdateKernels<WindowUpdateKey{Precision::fp32, 128, 96}>;
template struct WindowUpdateKernels<WindowUpdateKey{Precision::fp32, 128, 128}>;

}  // namespace tessera::ops
