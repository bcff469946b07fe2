// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/chain_loops.hpp"

#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

namespace tessera::ops::TESSERA_ISA {
namespace {

using bits::ChainRow;

void sum_rows(const std::uint32_t* bits, std::int64_t words, const std::uint8_t* codes,
              std::int64_t stride, std::int64_t count, std::int32_t* sums) {
  for (std::int64_t j = 0; j < count; ++j) sums[j] = 0;
  for (std::int64_t w = 0; w < words; ++w) {
    for (std::uint32_t left = bits[w]; left != 0; left &= left - 1) {
      const std::uint8_t* const row = codes + (w * 32 + __builtin_ctz(left)) * stride;
      for (std::int64_t j = 0; j < count; ++j) sums[j] += row[j];
    }
  }
}

/// Skips codes of 0, which many are after relu.
std::int32_t multiply(const std::uint8_t* codes, std::int64_t depth, const std::int16_t* weights,
                      std::int64_t stride, std::int64_t count, std::int32_t* sums) {
#ifdef __ARM_NEON
  // The sums of 16 columns stay in registers.
  for (std::int64_t first = 0; first < count; first += 16) {
    int32x4_t of[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (std::int64_t k = 0; k < depth; ++k) {
      if (codes[k] == 0) continue;
      const auto code = static_cast<std::int16_t>(codes[k]);
      const int16x8_t low = vld1q_s16(weights + k * stride + first);
      const int16x8_t high = vld1q_s16(weights + k * stride + first + 8);
      of[0] = vmlal_n_s16(of[0], vget_low_s16(low), code);
      of[1] = vmlal_n_s16(of[1], vget_high_s16(low), code);
      of[2] = vmlal_n_s16(of[2], vget_low_s16(high), code);
      of[3] = vmlal_n_s16(of[3], vget_high_s16(high), code);
    }
    for (int part = 0; part < 4; ++part) vst1q_s32(sums + first + part * 4, of[part]);
  }
#else
  for (std::int64_t j = 0; j < count; ++j) sums[j] = 0;
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int32_t code = codes[k];
    if (code == 0) continue;
    const std::int16_t* const row = weights + k * stride;
    for (std::int64_t j = 0; j < count; ++j) sums[j] += code * row[j];
  }
#endif
  std::int32_t sum = 0;
  for (std::int64_t k = 0; k < depth; ++k) sum += codes[k];
  return sum;
}

// One simple loop for each part, so that compilers make vectors of it. What is fused is what
// `BitFinish` fuses.
void finish_values(const ChainRow& row, const std::int32_t* sums, std::int64_t count,
                   float* values) {
  for (std::int64_t j = 0; j < count; ++j) {
    values[j] =
        __builtin_fmaf(row.scale * row.col_scale[j], static_cast<float>(sums[j]), row.bias[j]);
  }
  for (int term = 0; term < row.terms; ++term) {
    const float of_row = row.row_terms[term];
    const float* const of_columns = row.col_terms[term];
    for (std::int64_t j = 0; j < count; ++j) {
      values[j] = __builtin_fmaf(of_row, of_columns[j], values[j]);
    }
  }
  if (row.norm_scale != nullptr) {
    for (std::int64_t j = 0; j < count; ++j) {
      values[j] = __builtin_fmaf(row.norm_scale[j], values[j], row.norm_shift[j]);
    }
  }
  if (row.relu) {
    for (std::int64_t j = 0; j < count; ++j) values[j] = values[j] > 0 ? values[j] : 0.0f;
  }
  if (row.scales_result) {
    for (std::int64_t j = 0; j < count; ++j) {
      values[j] = __builtin_fmaf(values[j], row.result_scale, 0.0f);
    }
  }
}

void finish_codes(const ChainRow& row, const float* values, std::int64_t count,
                  std::uint8_t* codes) {
  constexpr std::int64_t at_once = 64;
  const float last = row.last_code;
  for (std::int64_t first = 0; first < count; first += at_once) {
    const std::int64_t end = count - first < at_once ? count - first : at_once;
    float whole[at_once];
    for (std::int64_t j = 0; j < end; ++j) {
      whole[j] = (values[first + j] - row.lower[first + j]) / row.step[first + j];
    }
    if (row.floors) {
      for (std::int64_t j = 0; j < end; ++j) whole[j] = __builtin_floorf(whole[j]);
    } else {
      for (std::int64_t j = 0; j < end; ++j) whole[j] = __builtin_rintf(whole[j]);
    }
    // What is no number becomes the lowest code.
    std::int32_t numbers[at_once];
    for (std::int64_t j = 0; j < end; ++j) {
      const float code = whole[j] > 0 ? whole[j] : 0.0f;
      numbers[j] = static_cast<std::int32_t>(code < last ? code : last);
    }
    for (std::int64_t j = 0; j < end; ++j) {
      codes[first + j] = static_cast<std::uint8_t>(numbers[j]);
    }
  }
}

}  // namespace

const bits::ChainTable& bit_chain_loops_table() {
  static const bits::ChainTable table = {sum_rows, multiply, finish_values, finish_codes};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
