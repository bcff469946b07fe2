// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/half_windows.cuh"

namespace tessera::ops {

const std::array<HalfWindowsFunction, num_half_windows> half_windows = {
    half_windows_function<32>(), half_windows_function<64>(), half_windows_function<128>()};

}  // namespace tessera::ops
