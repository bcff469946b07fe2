// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"

/// The inner loops of bit products on the CPU, and their table. Plain data only, since
/// `loops_simd.cpp` is compiled several times.
namespace tessera::ops::bits {

/// Rows of B that meet a row of A at once.
inline constexpr int columns_at_once = 4;

struct Table {
  /// counts[c] = bits that `a` shares with row c of `b`, whose rows are `stride` words apart.
  void (*count)(const std::uint32_t* a, const std::uint32_t* b, std::int64_t stride,
                std::int64_t words, std::int64_t (&counts)[columns_at_once]);
  /// products[c] = a . row c of `b`, of bytes; rows are `stride` bytes apart.
  void (*dot)(const std::uint8_t* a, const std::uint8_t* b, std::int64_t stride, std::int64_t bytes,
              std::int64_t (&products)[columns_at_once]);
  /// Bytes of the planes of one row: codes[k] for every k of its words.
  void (*spread)(const std::uint32_t* row, std::int64_t plane_words, int bits, std::int64_t words,
                 std::uint8_t* codes);
  void (*spread_wide)(const std::uint32_t* row, std::int64_t plane_words, int bits,
                      std::int64_t words, std::uint16_t* codes);
  /// sums[j] += codes[j].
  void (*add_bytes)(const std::uint8_t* codes, std::int64_t count, std::uint32_t* sums);
  void (*add_wide)(const std::uint16_t* codes, std::int64_t count, std::uint32_t* sums);
};

}  // namespace tessera::ops::bits

TESSERA_SIMD_TABLE(bits::Table, bit_loops)
