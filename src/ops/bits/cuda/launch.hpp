// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/finish.hpp"
#include "tessera/core/device.hpp"

/// What kernels of bit products are given, by value.
namespace tessera::ops {

/// Stacked planes of rows that are packed along K: plane p of row r begins at
/// words + p * plane_words + r * row_words. Rows are multiples of 16 bytes, and the bits behind K
/// are 0.
struct BitRows {
  const std::uint32_t* words = nullptr;
  std::int64_t plane_words = 0;
  std::int64_t row_words = 0;
  std::int64_t rows = 0;
  int planes = 0;

  friend bool operator==(const BitRows&, const BitRows&) = default;
};

/// Which parts of K the rows of a block have any bit in: parts[offsets[tile]] and so on. Without
/// offsets all parts count.
struct BitIndex {
  const std::int32_t* offsets = nullptr;
  const std::int32_t* parts = nullptr;
};

/// sums[i][j] = sum over k of a[i][k] b[j][k].
struct BitProduct {
  BitRows a;
  BitRows b;
  BitIndex index;
  bool a_stays = false;  ///< A and its index are the plan's: nothing that runs before writes them
  /// b as bytes in the order of `bytes/kernel.cuh`, where a kernel multiplies these.
  const std::uint8_t* b_bytes = nullptr;
  /// Of an A in blocks: the first element of B's rows that 64 rows of A meet. Null: the first.
  const std::int32_t* block_starts = nullptr;
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;
};

/// Packed codes: as quant::BitTensorView, of which the GPU's compiler needs no more.
struct PackedCodes {
  std::uint32_t* words = nullptr;
  int bits = 1;
  std::int64_t padded_rows = 0;
  std::int64_t words_per_row = 0;
};

/// What a product makes of its sums by itself.
enum class BitResultKind { values, rows, columns, bytes, sums };
struct BitResult {
  BitResultKind kind = BitResultKind::values;
  BitFinish finish;
  float* values = nullptr;  ///< one of these, or packed codes
  std::uint8_t* bytes = nullptr;
  std::int32_t* sums = nullptr;
  std::int64_t stride = 0;  ///< of what is not packed
  PackedCodes codes;        ///< along rows or columns
};

/// Makes of 32-bit sums, rows x cols without gaps, what `result` says: values, or codes.
void finish_in_pass(const std::int32_t* sums, std::int64_t rows, std::int64_t cols,
                    const BitResult& result, Stream stream);

/// Row terms of A's codes, one or two for each row: see `BitOptions::terms_of_a`.
void make_row_terms(const BitRows& codes, const float* row_scale, std::int64_t scale_stride,
                    float* terms, int count, Stream stream);

/// A compiled kernel of bit_gemm.
struct BitFunction {
  int rows;        ///< of a block
  int width;       ///< columns of a block
  int part_words;  ///< words of a row in one part of the index; 0: it has no index
  bool splits;     ///< whether two blocks may share K
  void (*allow)(const BitProduct&);  ///< before the first launch: the shared memory it needs
  void (*launch)(const BitProduct&, int split, Stream);
  /// Finishes its sums before they leave the registers. Null: it stores them.
  void (*launch_finished)(const BitProduct&, const BitResult&, Stream) = nullptr;
};

/// One plane on the left; one on the right, two, any number. Of 64 x 64 and 64 x 32.
extern const BitFunction planes_functions[3][2];
/// The same of 128 x 128.
extern const BitFunction boxed_planes[3];
/// Bytes on the right. Of 256 x 128 and 256 x 64.
extern const BitFunction bytes_functions[2];
/// Any planes on both sides.
extern const BitFunction pairs_function;
/// Bytes on both sides: one plane each, whose words hold four of them.
extern const BitFunction byte_pairs_function;

/// Makes bytes of b's planes, in the order that the kernel of this width reads.
void planes_to_bytes(const BitRows& b, int width, std::uint8_t* bytes, Stream stream);
/// What they take.
std::int64_t byte_operand_bytes(std::int64_t columns, std::int64_t row_words, int width);

}  // namespace tessera::ops
