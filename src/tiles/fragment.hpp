// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Where the bit of a row and a column stands in the words of a tile.
///
/// From 16 rows on, 16 rows and 64 columns are a strip of 32 words, one for each lane of a warp:
/// the A operand of `mma.m16n8k16` in four steps, and a warp's quarter of `wgmma.m64nNk16`. A
/// register of that operand holds two neighbouring columns. Number the pairs of a lane i = 4 * step
/// + register: the even column is bit i and the odd one bit i + 16, so that one shift and one mask
/// make the register.
///
/// Windows of 8 rows are the B operand of `mma.m16n8k16`, which has two registers a step: pair
/// i = 2 * step + register, even column in bit i, odd one in bit i + 8 of a lane's 16 bits.
namespace tessera::tiles {

struct BitPlace {
  int word = 0;
  int bit = 0;
};

/// `row` counts within the window, `column` within the tile.
constexpr BitPlace bit_place(int height, int row, int column) {
  const int step = column / 16;
  const int upper_columns = column % 16 / 8;
  const int odd = column % 2;
  const int lane = row % 8 * 4 + column % 8 / 2;
  if (height == 8) return {lane / 2, lane % 2 * 16 + odd * 8 + step * 2 + upper_columns};
  const int upper_rows = row % 16 / 8;
  return {row / 16 * 32 + lane, odd * 16 + step * 4 + upper_columns * 2 + upper_rows};
}

/// Columns [first, first + count) of a row, of a tile with these words: the first column in the
/// lowest bit, at most 32 of them. For encodings that go over edges row by row.
constexpr std::uint32_t row_bits(const std::uint32_t* tile, int height, int row, int first,
                                 int count) {
  std::uint32_t bits = 0;
  for (int k = 0; k < count; ++k) {
    const BitPlace at = bit_place(height, row, first + k);
    bits |= (tile[at.word] >> at.bit & 1u) << k;
  }
  return bits;
}

}  // namespace tessera::tiles
