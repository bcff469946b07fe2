// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"

/// The inner loops of bit products on the CPU, and their table. Plain data only, since
/// `loops_simd.cpp` is compiled several times.
namespace tessera::ops::bits {

/// Rows of B that meet a row of A at once.
inline constexpr int columns_at_once = 4;

/// What becomes of the sums of a row, as `BitFinish` says: numbers for each column, and those of
/// the row.
struct ChainRow {
  const float* col_scale = nullptr;
  const float* bias = nullptr;
  const float* col_terms[2] = {nullptr, nullptr};
  const float* norm_scale = nullptr;  ///< null: no norm
  const float* norm_shift = nullptr;
  const float* lower = nullptr;
  const float* step = nullptr;
  const float* inverse = nullptr;  ///< of the steps; null: divide
  int terms = 0;
  bool relu = false;
  bool scales_result = false;
  bool floors = false;
  float last_code = 0;
  float scale = 1;
  float row_terms[2] = {0, 0};
  float result_scale = 1;
};

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

  // Of chains of products.
  /// sums[j] = the sum of column j of the rows of `codes` whose bits are set. Columns are filled up
  /// to a multiple of 32, in codes and sums.
  void (*sum_rows)(const std::uint32_t* bits, std::int64_t words, const std::uint8_t* codes,
                   std::int64_t stride, std::int64_t count, std::int32_t* sums);
  /// sums[j] = the sum over k of codes[k] weights[k][j], whose rows are `stride` numbers apart.
  /// Returns the sum of the codes. Columns are filled up to a multiple of 16, in sums as well.
  std::int32_t (*multiply)(const std::uint8_t* codes, std::int64_t depth,
                           const std::int16_t* weights, std::int64_t stride, std::int64_t count,
                           std::int32_t* sums);
  /// The same with weights of a byte, those of four k side by side: weights[k / 4][j][k % 4], 0
  /// behind the last k. Null: the CPU has no instruction for it.
  std::int32_t (*multiply_fours)(const std::uint8_t* codes, std::int64_t depth,
                                 const std::uint8_t* weights, std::int64_t stride,
                                 std::int64_t count, std::int32_t* sums);
  void (*finish_values)(const ChainRow& row, const std::int32_t* sums, std::int64_t count,
                        float* values);
  void (*finish_codes)(const ChainRow& row, const float* values, std::int64_t count,
                       std::uint8_t* codes);
};

}  // namespace tessera::ops::bits

TESSERA_SIMD_TABLE(bits::Table, bit_loops)
