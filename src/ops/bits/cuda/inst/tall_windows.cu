// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/tall_bytes.cuh"
#include "ops/bits/cuda/wide_windows.cuh"

namespace tessera::ops {

const std::array<ByteWindowsFunction, num_tall_windows> tall_windows = {
    tall_bytes_function<TurnedShape<32, 5>>(), wide_windows_function<WideShape<64, 4>>(),
    wide_windows_function<WideShape<128, 3>>()};

}  // namespace tessera::ops
