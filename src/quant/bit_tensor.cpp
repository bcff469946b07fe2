// SPDX-License-Identifier: Apache-2.0
#include "tessera/quant/bit_tensor.hpp"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/quant/affine.hpp"

namespace tessera::quant {
namespace {

std::int64_t padded(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

void require(bool holds, const std::string& problem) {
  if (holds) return;
  throw Error(ErrorCode::bad_data, "a bit tensor contradicts itself: " + problem, "bit tensor",
              "pack it again");
}

void check_code(std::uint32_t code, int bits) {
  if (code >> bits == 0) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("code {} has more than {} bits", code, bits),
              "bit tensor", "pack it with more bits");
}

/// Packs element (row, k) = code(row, k).
template <class Code>
void pack(BitTensorView<std::uint32_t> to, Code&& code) {
  parallel_for(to.padded_rows, 16, [&](std::int64_t row) {
    for (int plane = 0; plane < to.bits; ++plane) {
      std::fill_n(to.row(plane, row), to.words_per_row, 0u);
    }
    if (row >= to.rows) return;
    for (std::int64_t word = 0; word * 32 < to.depth; ++word) {
      std::uint32_t planes[max_bits] = {};
      const std::int64_t count = std::min<std::int64_t>(32, to.depth - word * 32);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::uint32_t value = code(row, word * 32 + k);
        check_code(value, to.bits);
        for (int plane = 0; plane < to.bits; ++plane) planes[plane] |= (value >> plane & 1u) << k;
      }
      for (int plane = 0; plane < to.bits; ++plane) to.row(plane, row)[word] = planes[plane];
    }
  });
}

template <class Fill>
BitTensor filled(BitTensor tensor, Fill&& fill) {
  Buffer<std::uint32_t> words(tensor.num_words());
  fill(tensor.over(words.data()));
  tensor.words = std::move(words);
  return tensor;
}

void check_fits(BitTensorView<std::uint32_t> to, std::int64_t rows, std::int64_t depth) {
  if (to.rows == rows && to.depth == depth) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("codes of {} x {} into a bit tensor of {} x {}", rows, depth, to.rows, to.depth),
      "bit tensor", "use one of the same shape");
}

}  // namespace

BitTensor bit_tensor_shape(int bits, std::int64_t rows, std::int64_t depth) {
  check_bits(bits, "bit tensor");
  checked_area(rows, depth);
  BitTensor tensor;
  tensor.bits = bits;
  tensor.rows = rows;
  tensor.depth = depth;
  tensor.padded_rows = padded(rows, row_padding);
  tensor.words_per_row = padded(depth, depth_padding) / 32;
  return tensor;
}

void BitTensor::validate() const {
  require(bits >= 1 && bits <= max_bits, fmt::format("{} bits", bits));
  require(rows >= 0 && depth >= 0, "a negative size");
  // Sizes of a hostile file may be huge: compare before anything is multiplied.
  require(rows <= padded_rows && padded_rows - rows < row_padding && padded_rows % row_padding == 0,
          fmt::format("{} rows filled up to {}", rows, padded_rows));
  constexpr std::int64_t unit = depth_padding / 32;
  require(
      words_per_row >= 0 && words_per_row % unit == 0 &&
          words_per_row == depth / depth_padding * unit + (depth % depth_padding != 0 ? unit : 0),
      fmt::format("{} words for rows of {}", words_per_row, depth));
  const bool none = padded_rows == 0 || words_per_row == 0;
  require(none ? words.empty()
               : words.size() % (bits * words_per_row) == 0 &&
                     words.size() / (bits * words_per_row) == padded_rows,
          fmt::format("{} words", words.size()));
  if (none) return;
  const auto at = view();
  parallel_for(padded_rows, 64, [&](std::int64_t row) {
    for (int plane = 0; plane < bits; ++plane) {
      const std::uint32_t* of_row = at.row(plane, row);
      for (std::int64_t word = 0; word < words_per_row; ++word) {
        const std::int64_t left = row < rows ? depth - word * 32 : 0;
        const std::uint32_t inside = left >= 32 ? ~0u : left <= 0 ? 0u : (1u << left) - 1;
        require((of_row[word] & ~inside) == 0, fmt::format("a bit in the padding of row {}", row));
      }
    }
  });
}

std::ostream& operator<<(std::ostream& out, const BitTensor& tensor) {
  return out << fmt::format("{} bits, {} x {} in planes of {} x {} words", tensor.bits, tensor.rows,
                            tensor.depth, tensor.padded_rows, tensor.words_per_row);
}

void pack_rows(MatrixView<const std::uint16_t> codes, BitTensorView<std::uint32_t> to) {
  check_fits(to, codes.rows, codes.cols);
  pack(to, [&](std::int64_t row, std::int64_t k) { return std::uint32_t{codes(row, k)}; });
}

void pack_columns(MatrixView<const std::uint16_t> codes, BitTensorView<std::uint32_t> to) {
  check_fits(to, codes.cols, codes.rows);
  pack(to, [&](std::int64_t row, std::int64_t k) { return std::uint32_t{codes(k, row)}; });
}

BitTensor pack_rows(MatrixView<const std::uint16_t> codes, int bits) {
  return filled(bit_tensor_shape(bits, codes.rows, codes.cols),
                [&](BitTensorView<std::uint32_t> to) { pack_rows(codes, to); });
}

BitTensor pack_columns(MatrixView<const std::uint16_t> codes, int bits) {
  return filled(bit_tensor_shape(bits, codes.cols, codes.rows),
                [&](BitTensorView<std::uint32_t> to) { pack_columns(codes, to); });
}

Matrix<std::uint16_t> unpack(BitTensorView<const std::uint32_t> tensor) {
  Matrix<std::uint16_t> codes(tensor.rows, tensor.depth);
  parallel_for(tensor.rows, 16, [&](std::int64_t row) {
    for (std::int64_t k = 0; k < tensor.depth; ++k) {
      codes(row, k) = static_cast<std::uint16_t>(tensor.code(row, k));
    }
  });
  return codes;
}

BitTensor pack_pattern(const Graph& graph) {
  const auto& offsets = graph.row_offsets();
  const auto& indices = graph.col_indices();
  return filled(bit_tensor_shape(1, graph.num_rows(), graph.num_cols()),
                [&](BitTensorView<std::uint32_t> to) {
                  parallel_for(to.padded_rows, 64, [&](std::int64_t row) {
                    std::fill_n(to.row(0, row), to.words_per_row, 0u);
                    if (row >= to.rows) return;
                    for (EdgeOffset e = offsets[row]; e < offsets[row + 1]; ++e) {
                      to.row(0, row)[indices[e] / 32] |= 1u << (indices[e] % 32);
                    }
                  });
                });
}

}  // namespace tessera::quant
