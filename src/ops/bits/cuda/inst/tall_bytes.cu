// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/tall_bytes.cuh"

namespace tessera::ops {

const std::array<ByteWindowsFunction, num_tall_bytes> tall_bytes = {
    tall_bytes_function<TallBytesShape<32, 5>>(), tall_bytes_function<TallBytesShape<64, 4>>(),
    tall_bytes_function<TallBytesShape<128, 3>>()};

}  // namespace tessera::ops
