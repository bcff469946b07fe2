// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/store.hpp"

#include <algorithm>
#include <bit>

#include "tessera/core/parallel.hpp"

#include "ops/bits/check_run.hpp"
#include "ops/bits/kernel.hpp"

namespace tessera::ops {
namespace {

using Codes = quant::BitTensorView<const std::uint32_t>;

/// The sum of the codes of a row.
std::int64_t code_sum(const Codes& tensor, std::int64_t row) {
  std::int64_t total = 0;
  for (int p = 0; p < tensor.bits; ++p) {
    std::int64_t count = 0;
    for (std::int64_t w = 0; w < tensor.words_per_row; ++w) {
      count += std::popcount(tensor.row(p, row)[w]);
    }
    total += count << p;
  }
  return total;
}

/// One word of each plane, of `count` codes.
template <class CodeOf>
void store_word(const quant::BitTensorView<std::uint32_t>& to, std::int64_t row, std::int64_t word,
                std::int64_t count, CodeOf&& code_of) {
  std::uint32_t planes[quant::max_bits] = {};
  for (std::int64_t k = 0; k < count; ++k) {
    const std::uint32_t code = code_of(k);
    for (int p = 0; p < to.bits; ++p) planes[p] |= (code >> p & 1u) << k;
  }
  for (int p = 0; p < to.bits; ++p) to.row(p, row)[word] = planes[p];
}

}  // namespace

void bit_row_sums(Codes tensor, MatrixView<std::int64_t> sums) {
  const Checker check("bit_row_sums", {});
  check_tensor(check, tensor, "tensor", {}, tensor.bits, tensor.rows, tensor.depth);
  check.that(sums.rows == tensor.rows && sums.cols == 1, "sums are not one column of its rows");
  parallel_for(tensor.rows, 256, [&](std::int64_t row) { sums(row, 0) = code_sum(tensor, row); });
}

BitFinish make_finish(const BitOptions& options, const BitEpilogue& epilogue, const float* lower,
                      const float* step, const OwnCodes& own) {
  BitFinish finish;
  finish.row_scale = epilogue.row_scale.data;
  finish.row_scale_stride = epilogue.row_scale.stride;
  finish.col_scale = epilogue.col_scale.data;
  finish.row_terms = epilogue.row_terms.data;
  finish.row_terms_stride = epilogue.row_terms.stride;
  finish.col_terms = epilogue.col_terms.data;
  finish.col_terms_stride = epilogue.col_terms.stride;
  // Trials of planning have no terms.
  finish.terms = epilogue.col_terms.data == nullptr ? 0 : options.terms;
  finish.terms_of_a = epilogue.row_terms.data == nullptr;
  finish.bias = epilogue.bias.data;
  finish.norm_scale = epilogue.norm_scale.data;
  finish.norm_shift = epilogue.norm_shift.data;
  finish.activation = options.activation;
  finish.result_scale = epilogue.result_scale.data;
  finish.result_scale_stride = epilogue.result_scale.stride;
  finish.own = options.own;
  finish.own_codes = own;
  if (options.requantise) {
    const quant::Affine& affine = *options.requantise;
    finish.lower = lower;
    finish.step = step;
    finish.range_stride = affine.granularity == quant::Granularity::columns ? 1 : 0;
    finish.floors = affine.rounding == quant::Rounding::floor;
    finish.last_code = static_cast<float>(affine.max_code());
  }
  return finish;
}

BitStore::BitStore(const BitOptions& options, Codes a, const BitEpilogue& epilogue,
                   const BitOutputs& outputs, const OwnCodes& own)
    : options_(options),
      a_(a),
      outputs_(outputs),
      finish_(make_finish(options, epilogue,
                          options.requantise ? options.requantise->lower.data() : nullptr,
                          options.requantise ? options.requantise->scale.data() : nullptr, own)) {}

void BitStore::operator()(std::int64_t first_row, const std::int64_t* sums) const {
  const std::int64_t rows = std::min(block_rows, options_.rows - first_row);
  const std::int64_t cols = options_.cols;
  float row_sums[block_rows] = {};
  for (std::int64_t r = 0; r < rows && finish_.terms > 0 && finish_.terms_of_a; ++r) {
    row_sums[r] = static_cast<float>(code_sum(a_, first_row + r));
  }
  const auto value = [&](std::int64_t r, std::int64_t j) {
    return finish_.value(first_row + r, j, static_cast<float>(sums[r * cols + j]), row_sums[r]);
  };
  const auto code = [&](std::int64_t r, std::int64_t j) { return finish_.code(j, value(r, j)); };
  const auto store_all = [&](const auto& to, auto&& number) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t j = 0; j < cols; ++j) to(first_row + r, j) = number(r, j);
    }
  };
  switch (options_.output) {
    case BitOutput::sums32:
      return store_all(outputs_.sums32, [&](std::int64_t r, std::int64_t j) {
        return static_cast<std::int32_t>(sums[r * cols + j]);
      });
    case BitOutput::sums64:
      return store_all(outputs_.sums64,
                       [&](std::int64_t r, std::int64_t j) { return sums[r * cols + j]; });
    case BitOutput::values: return store_all(outputs_.values, value);
    case BitOutput::bytes:
      store_all(outputs_.bytes, [&](std::int64_t r, std::int64_t j) {
        return static_cast<std::uint8_t>(code(r, j));
      });
      for (std::int64_t r = 0; r < rows; ++r) {
        std::uint8_t* const bytes = outputs_.bytes.row(first_row + r);
        std::fill(bytes + cols, bytes + padded_bytes(cols), std::uint8_t{0});
      }
      return;
    case BitOutput::rows:
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t word = 0; word < outputs_.codes.words_per_row; ++word) {
          store_word(outputs_.codes, first_row + r, word,
                     std::min<std::int64_t>(32, cols - word * 32),
                     [&](std::int64_t k) { return code(r, word * 32 + k); });
        }
      }
      return;
    case BitOutput::columns:
      for (std::int64_t j = 0; j < cols; ++j) {
        store_word(outputs_.codes, j, first_row / 32, rows,
                   [&](std::int64_t r) { return code(r, j); });
      }
  }
}

void BitStore::clear_padding() const {
  if (options_.output != BitOutput::rows && options_.output != BitOutput::columns) return;
  const auto& codes = outputs_.codes;
  for (int p = 0; p < codes.bits; ++p) {
    std::fill(codes.row(p, codes.rows), codes.row(p, codes.padded_rows), 0u);
    // Blocks wrote the words that they have elements in; along columns, those are not all.
    const std::int64_t written = (codes.depth + 31) / 32;
    for (std::int64_t row = 0; row < codes.rows; ++row) {
      std::fill(codes.row(p, row) + written, codes.row(p, row) + codes.words_per_row, 0u);
    }
  }
}

}  // namespace tessera::ops
