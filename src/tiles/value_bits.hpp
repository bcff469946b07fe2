// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "tessera/core/dtype.hpp"
#include "tessera/core/memory.hpp"
#include "tiles/tile_values.hpp"

/// The order of values beside tiles, for the CPU and for kernels.
namespace tessera::tiles {

/// The bits of a word that belong to one half of its tile: steps 0 and 1, or 2 and 3.
constexpr std::uint32_t half_bits(int half) { return half == 0 ? 0x00ff00ffu : 0xff00ff00u; }

/// Places that a word's entries in a half take: an odd number. Lanes whose words are equally full
/// then find theirs in different banks of shared memory.
constexpr int run_of(int entries) { return entries == 0 ? 0 : entries | 1; }

/// The most entries of a half, of a tile of so many words.
constexpr int most_entries(int words) { return words * run_of(16); }

constexpr int units_of(int entries) { return (entries + value_unit - 1) / value_unit; }

/// Calls body(pair, odd) for the bits of a half in the order of their entries.
template <class Body>
constexpr void for_bits(std::uint32_t word, int half, Body&& body) {
  for (int pair = 8 * half; pair < 8 * half + 8; ++pair) {
    for (int odd = 0; odd < 2; ++odd) {
      if ((word >> (pair + 16 * odd) & 1u) != 0) body(pair, odd);
    }
  }
}

struct ValuePlace {
  int row = 0;     ///< in the window
  int column = 0;  ///< in the tile
};

/// The other way round than `bit_place`, for windows of 16 rows or more.
constexpr ValuePlace value_place(int word, int pair, int odd) {
  const int lane = word % 32;
  const int upper_rows = pair % 2;
  const int upper_columns = pair / 2 % 2;
  return {word / 32 * 16 + upper_rows * 8 + lane / 4,
          pair / 4 * 16 + upper_columns * 8 + lane % 4 * 2 + odd};
}

/// Offsets of units from the numbers of entries of each tile's halves, the second one's in the high
/// 16 bits.
Buffer<std::int32_t> unit_offsets_of(std::span<const std::uint32_t> totals);

/// Throws `unsupported` for windows of 8 rows, whose bits are ordered in another way.
void check_value_height(int height);

/// What `high` leaves of the value goes into the upper half.
template <class T>
std::uint32_t two_parts(float value, T high) {
  const T low(value - static_cast<float>(high));
  return high.bits | static_cast<std::uint32_t>(low.bits) << 16;
}

/// The nearest finite number: the largest fp32 numbers would be rounded to infinity.
inline Bfloat16 nearest_finite_bf16(float value) {
  Bfloat16 nearest(value);
  if (std::isfinite(value) && std::isinf(static_cast<float>(nearest))) --nearest.bits;
  return nearest;
}

inline std::uint32_t value_entry(float value, Precision precision) {
  switch (precision) {
    case Precision::bf16: return two_parts(value, nearest_finite_bf16(value));
    case Precision::fp16: return two_parts(value, Float16(value));
    default: {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      return bits;
    }
  }
}

}  // namespace tessera::tiles
