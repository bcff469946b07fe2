// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/turned_windows.cuh"

namespace tessera::ops {

const std::array<ByteWindowsFunction, num_turned_windows> turned_windows = {
    turned_windows_function<TurnedShape<32, 4, 6>>(),
    turned_windows_function<TurnedShape<64, 2, 5>>(),
    turned_windows_function<TurnedShape<128, 2, 3>>()};

}  // namespace tessera::ops
