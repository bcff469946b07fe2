// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tiles/fragment.hpp"

namespace tessera::tiles {

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
