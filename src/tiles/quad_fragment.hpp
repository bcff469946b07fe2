// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

/// Where the entries of a row and a quad stand in the words of 16 rows and 64 columns.
///
/// The sparse operand of `mma.sp.m16n8k32` has two entries for each row and quad, and two bits for
/// each say which of the four columns it is. Lane 4 g + 2 s + c holds those of step s for the row g
/// in its low half and for the row g + 8 in its high half, of the step's quads 4 c to 4 c + 3: both
/// steps of a tile take one word per lane, and the sparsity selector of the instruction is s.
///
/// The entries themselves are 0 or 1. Lane 4 g + q has those of the quads q and q + 4 in four
/// registers, first of row g, then of row g + 8. Number them i = 4 * step + register: the first
/// entry is bit i and the second bit i + 8 of the lane's 16 bits; two lanes share a word.
namespace tessera::tiles {

struct QuadPlace {
  int index_word = 0;
  int index_shift = 0;  ///< of four bits: the first index low, the second high
  int bit_word = 0;
  int bit = 0;  ///< of the first entry; the second is 8 further on
};

/// `row` counts within 16 rows, `quad` within the tile.
constexpr QuadPlace quad_place(int row, int quad) {
  const int step = quad / 8;
  const int of_step = quad % 8;
  const int group = row % 8;
  const int lower = row / 8;
  const int lane = 4 * group + of_step % 4;
  const int reg = of_step / 4 * 2 + lower;
  return {4 * group + 2 * step + of_step / 4, lower * 16 + of_step % 4 * 4, 32 + lane / 2,
          lane % 2 * 16 + 4 * step + reg};
}

/// Values of entries stand as the instruction reads them: each lane of a step has two for each of
/// its four registers, eight in all.
inline constexpr int quad_lane_values = 8;

/// Where the entries of a register stand; see `quad_place`. `quad` counts within the step.
struct QuadRegister {
  int row = 0;
  int quad = 0;
};
constexpr QuadRegister quad_register(int lane, int reg) {
  return {lane / 4 + reg % 2 * 8, lane % 4 + reg / 2 * 4};
}

/// Which columns of a quad the two entries of a row are, from the words of 16 rows and a tile; -1
/// where there is none. `quad` counts within the tile.
struct QuadColumns {
  int first = -1;
  int second = -1;
};
constexpr QuadColumns quad_columns_of(const std::uint32_t* words, int row, int quad) {
  const QuadPlace place = quad_place(row, quad);
  const std::uint32_t indices = words[place.index_word] >> place.index_shift;
  const std::uint32_t bits = words[place.bit_word] >> place.bit;
  return {(bits & 1u) != 0 ? static_cast<int>(indices & 3u) : -1,
          (bits >> 8 & 1u) != 0 ? static_cast<int>(indices >> 2 & 3u) : -1};
}

/// What stands for a set of at most two of four columns.
struct QuadEntries {
  std::uint32_t indices;  ///< four bits; the first index is lower than the second
  std::uint32_t present;  ///< bit 0: the first entry is 1; bit 1: the second is
};

constexpr QuadEntries quad_entries(unsigned used) {
  const auto entries = [](int first, int second, int present) {
    return QuadEntries{static_cast<std::uint32_t>(first | second << 2),
                       static_cast<std::uint32_t>(present)};
  };
  switch (used) {
    case 0b0000: return entries(0, 3, 0b00);
    case 0b0001: return entries(0, 3, 0b01);
    case 0b0010: return entries(1, 3, 0b01);
    case 0b0100: return entries(2, 3, 0b01);
    case 0b1000: return entries(0, 3, 0b10);
    case 0b0011: return entries(0, 1, 0b11);
    case 0b0101: return entries(0, 2, 0b11);
    case 0b0110: return entries(1, 2, 0b11);
    case 0b1001: return entries(0, 3, 0b11);
    case 0b1010: return entries(1, 3, 0b11);
    default: return entries(2, 3, 0b11);
  }
}

}  // namespace tessera::tiles
