// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>

#include "tessera/core/matrix.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/graph/graph.hpp"

/// Codes as stacked planes of bits, the other operand of bit products.
namespace tessera::quant {

/// Rows are filled up to a multiple of this, as matrix units take them ...
inline constexpr std::int64_t row_padding = 8;
/// ... and their depth to a multiple of this.
inline constexpr std::int64_t depth_padding = 128;

/// Bit tensors somewhere else: plane p of row r begins at (p * padded_rows + r) * words_per_row.
/// Word w has the elements 32 w to 32 w + 31, the first in the lowest bit. All padding is 0.
template <class Word>
struct BitTensorView {
  Word* words = nullptr;
  int bits = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;  ///< elements of a row
  std::int64_t padded_rows = 0;
  std::int64_t words_per_row = 0;
  Device device = {};

  std::int64_t plane_words() const noexcept { return padded_rows * words_per_row; }
  std::int64_t num_words() const noexcept { return bits * plane_words(); }
  Word* row(int plane, std::int64_t r) const noexcept {
    return words + (plane * padded_rows + r) * words_per_row;
  }
  BitsView<Word> plane(int p) const noexcept {
    return {words + p * plane_words(), rows, depth, words_per_row, device};
  }
  std::uint32_t code(std::int64_t r, std::int64_t k) const noexcept {
    std::uint32_t value = 0;
    for (int p = 0; p < bits; ++p) value |= (row(p, r)[k / 32] >> (k % 32) & 1u) << p;
    return value;
  }

  operator BitTensorView<const Word>() const noexcept requires(!std::is_const_v<Word>) {
    return {words, bits, rows, depth, padded_rows, words_per_row, device};
  }
};

/// An immutable bit tensor in memory of this process. Copies share it.
struct BitTensor {
  int bits = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t padded_rows = 0;
  std::int64_t words_per_row = 0;
  SharedArray<std::uint32_t> words;

  /// The same shape over words elsewhere, `num_words()` of them.
  template <class Word>
  BitTensorView<Word> over(Word* there, Device device = {}) const noexcept {
    return {there, bits, rows, depth, padded_rows, words_per_row, device};
  }
  BitTensorView<const std::uint32_t> view() const noexcept { return over(words.data()); }
  operator BitTensorView<const std::uint32_t>() const noexcept { return view(); }
  /// Words that the shape takes. Throws where they are too many to count.
  std::int64_t num_words() const {
    return checked_area(checked_area(padded_rows, words_per_row), bits);
  }
  std::int64_t num_bytes() const noexcept { return words.size() * 4; }

  /// Throws `bad_data` unless the sizes fit each other and all padding is 0.
  void validate() const;

  friend bool operator==(const BitTensor&, const BitTensor&) = default;
};

/// One line: bits, shape, padding.
std::ostream& operator<<(std::ostream& out, const BitTensor& tensor);

/// The shape of a tensor, without words. Bits outside 1 to 16 and negative sizes are errors.
BitTensor bit_tensor_shape(int bits, std::int64_t rows, std::int64_t depth);

/// Rows of codes, packed along the columns. A code of more bits is an error.
BitTensor pack_rows(MatrixView<const std::uint16_t> codes, int bits);
/// Columns of codes, packed along the rows: what an operand on the right is.
BitTensor pack_columns(MatrixView<const std::uint16_t> codes, int bits);

/// The same into memory that is there.
void pack_rows(MatrixView<const std::uint16_t> codes, BitTensorView<std::uint32_t> to);
void pack_columns(MatrixView<const std::uint16_t> codes, BitTensorView<std::uint32_t> to);

/// Back to codes, rows x depth.
Matrix<std::uint16_t> unpack(BitTensorView<const std::uint32_t> tensor);

/// The pattern of a graph as a dense matrix of one bit: row i has the sources of target i.
BitTensor pack_pattern(const Graph& graph);

}  // namespace tessera::quant
