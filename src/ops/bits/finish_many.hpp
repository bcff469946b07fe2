// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "ops/bits/finish.hpp"

#ifdef __CUDACC__
#define TESSERA_UNROLL _Pragma("unroll")
#else
#define TESSERA_UNROLL
#endif

/// `BitFinish` for several sums of one row at once, the same numbers: what is asked of the epilogue
/// is asked once for all of them, and a quotient takes five products in place of a division.
namespace tessera::ops {

/// x / step, rounded as a division is: `inverse` is the nearest number to 1 / step, and both are
/// far from the ends of the numbers (`inverse_of`). x is at most 2^16 steps.
/// `quick`: as `corrects_at_once` allows, the same as far as rounding to a whole number can tell.
template <bool quick>
TESSERA_ANYWHERE float quotient(float x, float step, float inverse) {
  const float about = x * inverse;
  const float nearer = fmaf(fmaf(-about, step, x), inverse, about);
  return quick ? nearer : fmaf(fmaf(-nearer, step, x), inverse, nearer);
}

/// Whether both quotients become the same codes up to `last_code`, nearest to
/// them. Before its last rounding the quick one is within 2^-45 of x / step, relatively. Both are
/// on the same side of every k + 1/2 unless x / step is that close to the middle M between k + 1/2
/// and a number of fp32 beside it. With step = S 2^b and x = X 2^a, S and X of 24 bits, S M must
/// then be that close to a multiple of the power of two that numbers X of that size are multiples
/// of.
inline bool corrects_at_once(float step, int last_code) {
  int exponent = 0;
  const auto s = static_cast<std::uint64_t>(std::ldexp(std::frexp(step, &exponent), 24));
  for (int k = 0; k < last_code; ++k) {
    // In units of half the distance from k + 1/2 to the next number; below 1/2 they are closer.
    int size = 0;
    std::frexp(static_cast<float>(k) + 0.5f, &size);
    const std::uint64_t middle = static_cast<std::uint64_t>(2 * k + 1) << (24 - size);
    for (const std::uint64_t beside : {k == 0 ? 2 * middle - 1 : middle - 1, middle + 1}) {
      const std::uint64_t product = s * beside;
      const std::uint64_t unit = std::bit_floor(product) >> 23;
      const std::uint64_t over = product % unit;
      if (std::min(over, unit - over) <= 64) return false;
    }
  }
  return true;
}

/// 0 where no quotient is to be computed with it.
inline float inverse_of(float step) { return step > 1e-30f && step < 1e30f ? 1.0f / step : 0.0f; }

/// Those of all steps; empty where one has none.
inline std::vector<float> inverses_of(const std::vector<float>& steps) {
  std::vector<float> inverses;
  for (const float step : steps) {
    inverses.push_back(inverse_of(step));
    if (inverses.back() == 0) return {};
  }
  return inverses;
}

/// The code of a whole number in a range from 0 on, where `rounds_directly` says so; on a GPU only
/// the lowest 16 bits of the result are the code's.
TESSERA_ANYWHERE inline std::uint32_t direct_code(float last_code, float sum, float inverse) {
  const float whole = fminf(fmaf(sum, inverse, 12582912.0f), 12582912.0f + last_code);
#ifdef __CUDA_ARCH__
  return __float_as_uint(whole);
#else
  return static_cast<std::uint32_t>(whole - 12582912.0f);
#endif
}

/// Whether `direct_code` of every whole number is the nearest code: all of those up to the first
/// that is cut off are tried.
inline bool rounds_directly(float step, int last_code) {
  constexpr float most_tried = 65536;
  const float inverse = inverse_of(step);
  const float end = (static_cast<float>(last_code) + 1) * step;
  if (inverse == 0 || !(end < most_tried)) return false;
  BitFinish finish;
  finish.last_code = static_cast<float>(last_code);
  for (float sum = 0; sum <= end; ++sum) {
    if (direct_code(finish.last_code, sum, inverse) != finish.code({0, step}, sum)) return false;
  }
  return true;
}

/// One range of all columns, and whether nothing below it comes out: of relu, and of sums that
/// nothing is done to.
inline void set_one_range(float lower, float step, BitFinish& finish) {
  finish.one_range = {lower, step};
  finish.one_inverse = inverse_of(step);
  const bool is_relu = finish.activation == BitActivation::relu && finish.result_scale == nullptr;
  finish.positive = lower == 0 && (is_relu || finish.keeps_sums());
}

/// From the sums in `v` to values. `column_of(i)` is a column that exists.
template <int count, class ColumnOf>
TESSERA_ANYWHERE void finish_values(const BitFinish& finish, const FinishRow& row,
                                    ColumnOf&& column_of, float (&v)[count]) {
  // Sums that nothing is done to stay as they are.
  if (finish.row_scale != nullptr || finish.col_scale != nullptr || finish.bias != nullptr) {
    float factors[count];
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) factors[i] = row.scale;
    if (finish.col_scale != nullptr) {
      TESSERA_UNROLL
      for (int i = 0; i < count; ++i) factors[i] = row.scale * finish.col_scale[column_of(i)];
    }
    if (finish.bias != nullptr) {
      TESSERA_UNROLL
      for (int i = 0; i < count; ++i) v[i] = fmaf(factors[i], v[i], finish.bias[column_of(i)]);
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < count; ++i) v[i] = fmaf(factors[i], v[i], 0.0f);
    }
  }
  if (finish.terms > 0) {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) {
      v[i] = fmaf(row.first_term, finish.col_terms[column_of(i)], v[i]);
    }
  }
  if (finish.terms > 1) {
    const float* const second = finish.col_terms + finish.col_terms_stride;
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) v[i] = fmaf(row.second_term, second[column_of(i)], v[i]);
  }
  if (finish.norm_scale != nullptr || finish.norm_shift != nullptr) {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) {
      const float scale = finish.norm_scale == nullptr ? 1.0f : finish.norm_scale[column_of(i)];
      const float shift = finish.norm_shift == nullptr ? 0.0f : finish.norm_shift[column_of(i)];
      v[i] = fmaf(scale, v[i], shift);
    }
  }
  if (finish.activation == BitActivation::relu) {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) v[i] = v[i] > 0 ? v[i] : 0.0f;
  }
  if (finish.activation == BitActivation::tanh) {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) v[i] = tanhf(v[i]);
  }
  if (finish.result_scale != nullptr) {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) v[i] = fmaf(v[i], row.result_scale, 0.0f);
  }
}

/// A code of up to 16 bits; on a GPU only the lowest 16 bits of the result are the code's. What is
/// no number becomes 0. Adding 3 * 2^22 rounds as rintf does.
/// Numbers that are `positive` are none below 0, and the lower bound is 0.
template <bool floors, bool quick = false, bool positive = false>
TESSERA_ANYWHERE inline std::uint32_t code_within(float last_code, float v, float lower, float step,
                                                  float inverse) {
  // Numbers that are cut off stay clear of the code above the last.
  const float most = (floors ? last_code + 0.5f : last_code) * step;
  const float inside = fminf(positive ? v : fmaxf(v - lower, 0.0f), most);
  const float steps = quotient<quick>(inside, step, inverse);
  const float whole = (floors ? floorf(steps) : steps) + 12582912.0f;
#ifdef __CUDA_ARCH__
  return __float_as_uint(whole);
#else
  return static_cast<std::uint32_t>(whole - 12582912.0f);
#endif
}

TESSERA_ANYWHERE inline std::uint32_t code_of(const BitFinish& finish, float v, float lower,
                                              float step, float inverse) {
  const std::uint32_t code = finish.floors
                                 ? code_within<true>(finish.last_code, v, lower, step, inverse)
                                 : code_within<false>(finish.last_code, v, lower, step, inverse);
  return code & 0xFFFFu;
}

template <bool floors, bool quick, int count, class ColumnOf>
TESSERA_ANYWHERE void codes_within(const BitFinish& finish, ColumnOf&& column_of,
                                   const float (&v)[count], std::uint32_t (&codes)[count]) {
  if (finish.range_stride == 0) {
    const float step = finish.one_range.step;
    const float inverse = finish.one_inverse;
    if (quick && finish.positive) {
      TESSERA_UNROLL
      for (int i = 0; i < count; ++i) {
        codes[i] = code_within<floors, quick, true>(finish.last_code, v[i], 0.0f, step, inverse);
      }
      return;
    }
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) {
      codes[i] =
          code_within<floors, quick>(finish.last_code, v[i], finish.one_range.lower, step, inverse);
    }
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) {
      const auto col = column_of(i);
      codes[i] = code_within<floors, quick>(finish.last_code, v[i], finish.lower[col],
                                            finish.step[col], finish.inverse[col]);
    }
  }
}

/// As `code_within`.
template <int count, class ColumnOf>
TESSERA_ANYWHERE void finish_codes(const BitFinish& finish, ColumnOf&& column_of,
                                   const float (&v)[count], std::uint32_t (&codes)[count]) {
  if (finish.inverse == nullptr) {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) codes[i] = finish.code(column_of(i), v[i]);
  } else if (finish.floors) {
    codes_within<true, false>(finish, column_of, v, codes);
  } else if (finish.quick) {
    codes_within<false, true>(finish, column_of, v, codes);
  } else {
    codes_within<false, false>(finish, column_of, v, codes);
  }
}

}  // namespace tessera::ops

#undef TESSERA_UNROLL
