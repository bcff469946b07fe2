// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/byte_windows.cuh"

namespace tessera::ops {

const std::array<ByteWindowsFunction, num_byte_windows> byte_windows = {
    byte_windows_function<32, 4>(), byte_windows_function<64, 2>(),
    byte_windows_function<128, 2>()};

}  // namespace tessera::ops
