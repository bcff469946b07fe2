// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/byte_windows.cuh"

namespace tessera::ops {

const std::array<ByteWindowsFunction, num_byte_windows> byte_windows = {
    byte_windows_function<ByteWindowsShape<32, 4, 8>>(),
    byte_windows_function<ByteWindowsShape<64, 2, 5>>(),
    byte_windows_function<ByteWindowsShape<128, 2, 4>>()};

}  // namespace tessera::ops
