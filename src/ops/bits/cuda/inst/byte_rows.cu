// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/byte_rows.cuh"

namespace tessera::ops {

const std::array<ByteRowsFunction, num_byte_rows> byte_rows_of_16 = {
    byte_rows_function<1, 16>(), byte_rows_function<2, 16>(),  byte_rows_function<4, 16>(),
    byte_rows_function<8, 16>(), byte_rows_function<16, 16>(), byte_rows_function<32, 16>()};

const std::array<ByteRowsFunction, num_narrow_byte_rows> byte_rows_of_8 = {
    byte_rows_function<2, 8>(), byte_rows_function<4, 8>(), byte_rows_function<8, 8>(),
    byte_rows_function<16, 8>()};

}  // namespace tessera::ops
