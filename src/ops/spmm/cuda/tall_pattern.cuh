// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// From bits to the registers of A. A register holds two neighbouring columns of a row, the even
/// one in its low half; tiles/fragment.hpp says which bits they are.
namespace tessera::ops {

/// 2.0, in bf16 and in fp16, where there is an edge: one bit of the exponent. The store halves.
template <int steps>
__device__ void expand_pattern(std::uint32_t word, std::uint32_t (&values)[steps][4]) {
#pragma unroll
  for (int i = 0; i < 4 * steps; ++i) {
    const std::uint32_t moved = i < 15 ? word << (14 - i) : word >> 1;
    values[i / 4][i % 4] = moved & 0x40004000u;
  }
}

/// The column's scale where there is an edge, as a high and a low part that add up to it.
template <int steps>
__device__ void expand_scaled(std::uint32_t word, const std::uint32_t* scales,
                              std::uint32_t (&high)[steps][4], std::uint32_t (&low)[steps][4]) {
  const int first_column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int upper_columns = 0; upper_columns < 2; ++upper_columns) {
      const auto pair =
          *reinterpret_cast<const uint2*>(scales + step * 16 + upper_columns * 8 + first_column);
      const std::uint32_t highs = __byte_perm(pair.x, pair.y, 0x5410);
      const std::uint32_t lows = __byte_perm(pair.x, pair.y, 0x7632);
#pragma unroll
      for (int upper_rows = 0; upper_rows < 2; ++upper_rows) {
        const int pair_register = 2 * upper_columns + upper_rows;
        const std::uint32_t mask = (word >> (4 * step + pair_register) & 0x00010001u) * 0xffffu;
        high[step][pair_register] = mask & highs;
        low[step][pair_register] = mask & lows;
      }
    }
  }
}

}  // namespace tessera::ops
