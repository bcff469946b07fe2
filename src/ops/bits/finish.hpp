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
  // Codes of the row itself, a byte or two each; one of both is absent.
  float own = 0;
  const std::uint8_t* own_bytes = nullptr;
  const std::uint16_t* own_words = nullptr;
  std::int64_t own_stride = 0;
  // Requantisation.
  const float* lower = nullptr;
  const float* step = nullptr;
  std::int64_t range_stride = 0;  ///< 0 for one range, 1 for one per column
  bool floors = false;
  float last_code = 0;

  /// `row_sum`: of the codes in the row of A, where terms are made of it.
  TESSERA_ANYWHERE float value(std::int64_t row, std::int64_t col, float sum,
                               float row_sum = 0) const {
    if (own != 0) sum = fmaf(own, own_code(row, col), sum);
    const float by_row = row_scale == nullptr ? 1.0f : row_scale[row * row_scale_stride];
    const float by_col = col_scale == nullptr ? 1.0f : col_scale[col];
    float v = fmaf(by_row * by_col, sum, bias == nullptr ? 0.0f : bias[col]);
    for (int t = 0; t < terms; ++t) {
      const float term = !terms_of_a ? row_terms[row * row_terms_stride + t]
                         : t == 0    ? by_row * row_sum
                                     : by_row;
      v = fmaf(term, col_terms[t * col_terms_stride + col], v);
    }
    if (norm_scale != nullptr || norm_shift != nullptr) {
      v = fmaf(norm_scale == nullptr ? 1.0f : norm_scale[col], v,
               norm_shift == nullptr ? 0.0f : norm_shift[col]);
    }
    if (activation == BitActivation::relu) v = v > 0 ? v : 0.0f;
    if (activation == BitActivation::tanh) v = tanhf(v);
    if (result_scale != nullptr) v = fmaf(v, result_scale[row * result_scale_stride], 0.0f);
    return v;
  }

  TESSERA_ANYWHERE std::uint32_t code(std::int64_t col, float v) const {
    const float steps = (v - lower[col * range_stride]) / step[col * range_stride];
    const float whole = floors ? floorf(steps) : rintf(steps);
    // What is no number becomes the lowest code.
    if (!(whole > 0)) return 0;
    return static_cast<std::uint32_t>(whole < last_code ? whole : last_code);
  }

 private:
  TESSERA_ANYWHERE float own_code(std::int64_t row, std::int64_t col) const {
    const std::int64_t at = row * own_stride + col;
    return static_cast<float>(own_bytes != nullptr ? own_bytes[at] : own_words[at]);
  }
};

}  // namespace tessera::ops
