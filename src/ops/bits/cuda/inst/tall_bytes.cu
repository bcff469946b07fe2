// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/tall_bytes.cuh"

namespace tessera::ops {

const std::array<ByteWindowsFunction, num_tall_bytes> tall_bytes = {
    tall_bytes_function<TurnedShape<32, 4, 5>>(), tall_bytes_function<TurnedShape<64, 4, 4>>(),
    tall_bytes_function<TurnedShape<128, 4, 3>>()};

}  // namespace tessera::ops
