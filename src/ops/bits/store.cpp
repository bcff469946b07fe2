// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/store.hpp"

#include <algorithm>

#include "tessera/core/parallel.hpp"

#include "ops/bits/kernel.hpp"
#include "ops/bits/row_sums.hpp"

namespace tessera::ops {

BitFinish make_finish(const BitOptions& options, const BitEpilogue& epilogue, const float* lower,
                      const float* step) {
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

void add_own(const BitOptions& options, const OwnCodes& own, BitFinish& finish) {
  finish.own = options.own;
  finish.own_bytes = own.bytes;
  finish.own_words = own.words;
  finish.own_stride = own.stride;
}

BitStore::BitStore(const BitOptions& options, quant::BitTensorView<const std::uint32_t> a,
                   const BitEpilogue& epilogue, const BitOutputs& outputs, const OwnCodes& own)
    : options_(options),
      a_(a),
      outputs_(outputs),
      finish_(make_finish(options, epilogue,
                          options.requantise ? options.requantise->lower.data() : nullptr,
                          options.requantise ? options.requantise->scale.data() : nullptr)) {
  add_own(options, own, finish_);
}

void BitStore::operator()(std::int64_t first_row, const std::int64_t* sums) const {
  const std::int64_t rows = std::min(block_rows, options_.rows - first_row);
  if (options_.output == BitOutput::rows) return store_codes_by_rows(first_row, rows, sums);
  if (options_.output == BitOutput::columns) return store_codes_by_columns(first_row, rows, sums);
  if (options_.output == BitOutput::bytes) return store_bytes(first_row, rows, sums);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t* of_row = sums + r * options_.cols;
    const std::int64_t row = first_row + r;
    const float row_sum = sum_of_row(row);
    for (std::int64_t j = 0; j < options_.cols; ++j) {
      switch (options_.output) {
        case BitOutput::sums32:
          outputs_.sums32(row, j) = static_cast<std::int32_t>(of_row[j]);
          break;
        case BitOutput::sums64: outputs_.sums64(row, j) = of_row[j]; break;
        default:
          outputs_.values(row, j) = finish_.value(row, j, static_cast<float>(of_row[j]), row_sum);
          break;
      }
    }
  }
}

void BitStore::store_codes_by_rows(std::int64_t first_row, std::int64_t rows,
                                   const std::int64_t* sums) const {
  const auto& codes = outputs_.codes;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = first_row + r;
    const float row_sum = sum_of_row(row);
    for (std::int64_t word = 0; word < codes.words_per_row; ++word) {
      std::uint32_t planes[quant::max_bits] = {};
      for (std::int64_t k = 0; k < 32 && word * 32 + k < options_.cols; ++k) {
        const std::int64_t j = word * 32 + k;
        const auto sum = static_cast<float>(sums[r * options_.cols + j]);
        const std::uint32_t code = finish_.code(j, finish_.value(row, j, sum, row_sum));
        for (int p = 0; p < codes.bits; ++p) planes[p] |= (code >> p & 1u) << k;
      }
      for (int p = 0; p < codes.bits; ++p) codes.row(p, row)[word] = planes[p];
    }
  }
}

void BitStore::store_bytes(std::int64_t first_row, std::int64_t rows,
                           const std::int64_t* sums) const {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::uint8_t* const to = outputs_.bytes.row(first_row + r);
    const float row_sum = sum_of_row(first_row + r);
    for (std::int64_t j = 0; j < options_.cols; ++j) {
      const auto sum = static_cast<float>(sums[r * options_.cols + j]);
      to[j] =
          static_cast<std::uint8_t>(finish_.code(j, finish_.value(first_row + r, j, sum, row_sum)));
    }
    std::fill(to + options_.cols, to + padded_bytes(options_.cols), std::uint8_t{0});
  }
}

void BitStore::store_codes_by_columns(std::int64_t first_row, std::int64_t rows,
                                      const std::int64_t* sums) const {
  const auto& codes = outputs_.codes;
  float row_sums[block_rows];
  for (std::int64_t r = 0; r < rows; ++r) row_sums[r] = sum_of_row(first_row + r);
  for (std::int64_t j = 0; j < options_.cols; ++j) {
    std::uint32_t planes[quant::max_bits] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto sum = static_cast<float>(sums[r * options_.cols + j]);
      const std::uint32_t code = finish_.code(j, finish_.value(first_row + r, j, sum, row_sums[r]));
      for (int p = 0; p < codes.bits; ++p) planes[p] |= (code >> p & 1u) << r;
    }
    for (int p = 0; p < codes.bits; ++p) codes.row(p, j)[first_row / 32] = planes[p];
  }
}

float BitStore::sum_of_row(std::int64_t row) const {
  if (finish_.terms == 0 || !finish_.terms_of_a) return 0;
  return static_cast<float>(code_sum(a_, row));
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
