// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "tessera/ops/bit_forms.hpp"

#ifdef __CUDACC__
#define TESSERA_ANYWHERE __host__ __device__
#else
#define TESSERA_ANYWHERE
#endif

/// What becomes of a sum, the same numbers on every device: each product that meets an addition is
/// one fused operation, so that no compiler has a choice. tanh alone may differ by its last digit.
namespace tessera::ops {

/// What all numbers of a row have in common ...
struct FinishRow {
  float scale = 1;
  float first_term = 0;
  float second_term = 0;
  float result_scale = 1;
};
/// ... or of a column.
struct FinishColumn {
  float scale = 1;
  float bias = 0;
  float first_term = 0;
  float second_term = 0;
  float norm_scale = 1;
  float norm_shift = 0;
};
struct FinishRange {
  float lower;
  float step;
};

/// The codes of B's rows, spread to a byte or to two each; one of both is absent.
struct OwnCodes {
  const std::uint8_t* bytes = nullptr;
  const std::uint16_t* words = nullptr;
  std::int64_t stride = 0;
};

struct BitFinish {
  const float* row_scale = nullptr;
  std::int64_t row_scale_stride = 0;
  const float* col_scale = nullptr;
  const float* row_terms = nullptr;
  std::int64_t row_terms_stride = 0;
  const float* col_terms = nullptr;
  std::int64_t col_terms_stride = 0;
  int terms = 0;
  bool terms_of_a = false;  ///< they are made of the sum of the codes of A's row
  const float* bias = nullptr;
  const float* norm_scale = nullptr;
  const float* norm_shift = nullptr;
  BitActivation activation = BitActivation::none;
  const float* result_scale = nullptr;
  std::int64_t result_scale_stride = 0;
  float own = 0;       ///< that codes of the row itself are multiplied by
  OwnCodes own_codes;  ///< where it is not 0
  // Requantisation.
  const float* lower = nullptr;
  const float* step = nullptr;
  const float* inverse = nullptr;  ///< of the steps, for finish_many.hpp; null: divide
  bool quick = false;              ///< `corrects_at_once` of all steps
  bool direct = false;             ///< `rounds_directly` of one range
  bool positive = false;           ///< for finish_many.hpp: no value is below 0, nor is any range
  /// Where all columns have one range, for finish_many.hpp: no GPU has to fetch it.
  FinishRange one_range = {0, 1};
  float one_inverse = 0;
  std::int64_t range_stride = 0;  ///< 0 for one range, 1 for one per column
  bool floors = false;
  float last_code = 0;

  /// Whether values are the sums themselves.
  TESSERA_ANYWHERE bool keeps_sums() const {
    return row_scale == nullptr && col_scale == nullptr && bias == nullptr && terms == 0 &&
           norm_scale == nullptr && norm_shift == nullptr && activation == BitActivation::none &&
           result_scale == nullptr && own == 0;
  }

  /// `row_sum`: of the codes in the row of A, where terms are made of it.
  TESSERA_ANYWHERE FinishRow row(std::int64_t row, float row_sum = 0) const {
    FinishRow numbers;
    if (row_scale != nullptr) numbers.scale = row_scale[row * row_scale_stride];
    if (terms > 0) {
      numbers.first_term = terms_of_a ? numbers.scale * row_sum : row_terms[row * row_terms_stride];
    }
    if (terms > 1) {
      numbers.second_term = terms_of_a ? numbers.scale : row_terms[row * row_terms_stride + 1];
    }
    if (result_scale != nullptr) numbers.result_scale = result_scale[row * result_scale_stride];
    return numbers;
  }

  TESSERA_ANYWHERE FinishColumn column(std::int64_t col) const {
    FinishColumn numbers;
    if (col_scale != nullptr) numbers.scale = col_scale[col];
    if (bias != nullptr) numbers.bias = bias[col];
    if (terms > 0) numbers.first_term = col_terms[col];
    if (terms > 1) numbers.second_term = col_terms[col_terms_stride + col];
    if (norm_scale != nullptr) numbers.norm_scale = norm_scale[col];
    if (norm_shift != nullptr) numbers.norm_shift = norm_shift[col];
    return numbers;
  }

  TESSERA_ANYWHERE float value(const FinishRow& of_row, const FinishColumn& of_col,
                               float sum) const {
    float v = fmaf(of_row.scale * of_col.scale, sum, of_col.bias);
    if (terms > 0) v = fmaf(of_row.first_term, of_col.first_term, v);
    if (terms > 1) v = fmaf(of_row.second_term, of_col.second_term, v);
    if (norm_scale != nullptr || norm_shift != nullptr) {
      v = fmaf(of_col.norm_scale, v, of_col.norm_shift);
    }
    if (activation == BitActivation::relu) v = v > 0 ? v : 0.0f;
    if (activation == BitActivation::tanh) v = tanhf(v);
    if (result_scale != nullptr) v = fmaf(v, of_row.result_scale, 0.0f);
    return v;
  }

  TESSERA_ANYWHERE float value(std::int64_t row_index, std::int64_t col, float sum,
                               float row_sum = 0) const {
    return value(row(row_index, row_sum), column(col), with_own(row_index, col, sum));
  }
  /// A sum with the codes of the target itself, where these are added.
  TESSERA_ANYWHERE float with_own(std::int64_t row_index, std::int64_t col, float sum) const {
    return own == 0 ? sum : fmaf(own, own_code(row_index, col), sum);
  }

  TESSERA_ANYWHERE FinishRange range(std::int64_t col) const {
    return {lower[col * range_stride], step[col * range_stride]};
  }

  TESSERA_ANYWHERE std::uint32_t code(const FinishRange& range, float v) const {
    const float steps = (v - range.lower) / range.step;
    const float whole = floors ? floorf(steps) : rintf(steps);
    // What is no number becomes the lowest code.
    if (!(whole > 0)) return 0;
    return static_cast<std::uint32_t>(whole < last_code ? whole : last_code);
  }
  TESSERA_ANYWHERE std::uint32_t code(std::int64_t col, float v) const {
    return code(range(col), v);
  }

 private:
  TESSERA_ANYWHERE float own_code(std::int64_t row, std::int64_t col) const {
    const std::int64_t at = row * own_codes.stride + col;
    return static_cast<float>(own_codes.bytes != nullptr ? own_codes.bytes[at]
                                                         : own_codes.words[at]);
  }
};

}  // namespace tessera::ops
