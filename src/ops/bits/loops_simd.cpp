// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/loops.hpp"

#include "ops/bits/dot_product.hpp"

#ifdef __ARM_NEON
#include <arm_neon.h>
#endif

#ifdef __AVX512F__
#define TESSERA_BIT_COUNT __attribute__((target("avx512vpopcntdq")))
#endif

namespace tessera::ops::TESSERA_ISA {
namespace {

using bits::ChainRow;
using bits::columns_at_once;

void count(const std::uint32_t* a, const std::uint32_t* b, std::int64_t stride, std::int64_t words,
           std::int64_t (&counts)[columns_at_once]) {
#ifdef __ARM_NEON
  // Bytes of at most 8 for each vector of 16: 31 of them fit a byte. Rows are whole vectors.
  uint64x2_t totals[columns_at_once];
  for (auto& total : totals) total = vdupq_n_u64(0);
  for (std::int64_t begin = 0; begin < words; begin += 31 * 4) {
    const std::int64_t end = begin + 31 * 4 < words ? begin + 31 * 4 : words;
    uint8x16_t few[columns_at_once];
    for (auto& bytes : few) bytes = vdupq_n_u8(0);
    for (std::int64_t w = begin; w < end; w += 4) {
      const uint8x16_t of_a = vreinterpretq_u8_u32(vld1q_u32(a + w));
      for (int c = 0; c < columns_at_once; ++c) {
        const uint8x16_t of_b = vreinterpretq_u8_u32(vld1q_u32(b + c * stride + w));
        few[c] = vaddq_u8(few[c], vcntq_u8(vandq_u8(of_a, of_b)));
      }
    }
    for (int c = 0; c < columns_at_once; ++c) {
      totals[c] = vpadalq_u32(totals[c], vpaddlq_u16(vpaddlq_u8(few[c])));
    }
  }
  for (int c = 0; c < columns_at_once; ++c) {
    counts[c] = static_cast<std::int64_t>(vaddvq_u64(totals[c]));
  }
#else
  for (auto& value : counts) value = 0;
  for (std::int64_t w = 0; w < words; w += 2) {
    std::uint64_t of_a;
    __builtin_memcpy(&of_a, a + w, 8);
    for (int c = 0; c < columns_at_once; ++c) {
      std::uint64_t of_b;
      __builtin_memcpy(&of_b, b + c * stride + w, 8);
      counts[c] += __builtin_popcountll(of_a & of_b);
    }
  }
#endif
}

#ifdef TESSERA_BIT_COUNT
bool has_bit_count() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 14 & 1u) != 0;
}

/// The same, 512 bits at once.
TESSERA_BIT_COUNT void count_by_vectors(const std::uint32_t* a, const std::uint32_t* b,
                                        std::int64_t stride, std::int64_t words,
                                        std::int64_t (&counts)[columns_at_once]) {
  __m512i totals[columns_at_once];
  for (auto& total : totals) total = _mm512_setzero_si512();
  for (std::int64_t w = 0; w < words; w += 16) {
    const auto present =
        static_cast<__mmask16>(words - w < 16 ? (1u << (words - w)) - 1u : 0xFFFFu);
    const __m512i of_a = _mm512_maskz_loadu_epi32(present, a + w);
    for (int c = 0; c < columns_at_once; ++c) {
      const __m512i of_b = _mm512_maskz_loadu_epi32(present, b + c * stride + w);
      totals[c] = _mm512_add_epi64(totals[c], _mm512_popcnt_epi64(_mm512_and_si512(of_a, of_b)));
    }
  }
  for (int c = 0; c < columns_at_once; ++c) {
    std::int64_t eight[8];
    _mm512_storeu_si512(eight, totals[c]);
    counts[c] = 0;
    for (const std::int64_t some : eight) counts[c] += some;
  }
}
#endif

/// 2^14 products of bytes are below 2^30.
constexpr std::int64_t bytes_of_a_run = 1 << 14;

void dot(const std::uint8_t* a, const std::uint8_t* b, std::int64_t stride, std::int64_t bytes,
         std::int64_t (&products)[columns_at_once]) {
  for (int c = 0; c < columns_at_once; ++c) {
    std::int64_t total = 0;
    for (std::int64_t begin = 0; begin < bytes; begin += bytes_of_a_run) {
      const std::int64_t end = begin + bytes_of_a_run < bytes ? begin + bytes_of_a_run : bytes;
      std::uint32_t sum = 0;
      for (std::int64_t k = begin; k < end; ++k) {
        sum += static_cast<std::uint32_t>(a[k]) * static_cast<std::uint32_t>(b[c * stride + k]);
      }
      total += sum;
    }
    products[c] = total;
  }
}

#ifdef TESSERA_DOT_PRODUCT
/// The same, a vector at once.
TESSERA_DOT_PRODUCT void dot_by_fours(const std::uint8_t* a, const std::uint8_t* b,
                                      std::int64_t stride, std::int64_t bytes,
                                      std::int64_t (&products)[columns_at_once]) {
  for (auto& product : products) product = 0;
  for (std::int64_t begin = 0; begin < bytes; begin += bytes_of_a_run) {
    const std::int64_t end = begin + bytes_of_a_run < bytes ? begin + bytes_of_a_run : bytes;
    DotVector sums[columns_at_once] = {};
    DotVector of_a = {};
    std::int64_t k = begin;
    for (; k + dot_bytes <= end; k += dot_bytes) {
      const DotVector left = load_bytes(a + k);
      for (int c = 0; c < columns_at_once; ++c) {
        sums[c] = add_dots(sums[c], left, shifted(load_bytes(b + c * stride + k)));
      }
      if constexpr (dot_shift > 0) of_a = add_dots(of_a, left, all_of(0x01010101u));
    }
    const std::int64_t more = dot_shift > 0 ? dot_shift * total(of_a) : 0;
    for (int c = 0; c < columns_at_once; ++c) {
      products[c] += total(sums[c]) + more;
      for (std::int64_t rest = k; rest < end; ++rest) {
        products[c] += std::int64_t{a[rest]} * b[c * stride + rest];
      }
    }
  }
}
#endif

template <class Code>
void spread_codes(const std::uint32_t* row, std::int64_t plane_words, int bits, std::int64_t words,
                  Code* codes) {
  for (std::int64_t w = 0; w < words; ++w) {
    Code of_word[32] = {};
    for (int plane = 0; plane < bits; ++plane) {
      const std::uint32_t word = row[plane * plane_words + w];
      for (int k = 0; k < 32; ++k) {
        of_word[k] = static_cast<Code>(of_word[k] | ((word >> k & 1u) << plane));
      }
    }
    for (int k = 0; k < 32; ++k) codes[w * 32 + k] = of_word[k];
  }
}

void spread(const std::uint32_t* row, std::int64_t plane_words, int bits, std::int64_t words,
            std::uint8_t* codes) {
#ifdef __ARM_NEON
  // Each of 8 lanes looks at its own bit of one byte of a plane.
  constexpr std::uint8_t own_bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t own = vld1q_u8(own_bits);
  for (std::int64_t w = 0; w < words; ++w) {
    uint8x16_t low = vdupq_n_u8(0);
    uint8x16_t high = vdupq_n_u8(0);
    for (int plane = 0; plane < bits; ++plane) {
      const std::uint32_t word = row[plane * plane_words + w];
      const uint8x16_t value = vdupq_n_u8(static_cast<std::uint8_t>(1u << plane));
      const auto bits_of = [](std::uint32_t two) {
        return vcombine_u8(vdup_n_u8(static_cast<std::uint8_t>(two)),
                           vdup_n_u8(static_cast<std::uint8_t>(two >> 8)));
      };
      low = vorrq_u8(low, vandq_u8(vtstq_u8(bits_of(word), own), value));
      high = vorrq_u8(high, vandq_u8(vtstq_u8(bits_of(word >> 16), own), value));
    }
    vst1q_u8(codes + w * 32, low);
    vst1q_u8(codes + w * 32 + 16, high);
  }
#else
  spread_codes(row, plane_words, bits, words, codes);
#endif
}

template <class Code>
void add_codes(const Code* codes, std::int64_t count, std::uint32_t* sums) {
  for (std::int64_t j = 0; j < count; ++j) sums[j] += codes[j];
}

#ifdef __ARM_NEON
/// `vectors` times 16 columns, whose sums stay in registers: those of 256 rows fit 16 bits.
template <int vectors>
void sum_columns(const std::uint32_t* bits, std::int64_t words, const std::uint8_t* codes,
                 std::int64_t stride, std::int32_t* sums) {
  for (std::int64_t begin = 0; begin < words; begin += 8) {
    const std::int64_t end = begin + 8 < words ? begin + 8 : words;
    uint16x8_t of[2 * vectors];
    for (auto& eight : of) eight = vdupq_n_u16(0);
    for (std::int64_t w = begin; w < end; ++w) {
      for (std::uint32_t left = bits[w]; left != 0; left &= left - 1) {
        const std::uint8_t* const row = codes + (w * 32 + __builtin_ctz(left)) * stride;
        for (int v = 0; v < vectors; ++v) {
          const uint8x16_t bytes = vld1q_u8(row + v * 16);
          of[2 * v] = vaddw_u8(of[2 * v], vget_low_u8(bytes));
          of[2 * v + 1] = vaddw_high_u8(of[2 * v + 1], bytes);
        }
      }
    }
    for (int i = 0; i < 2 * vectors; ++i) {
      std::int32_t* const to = sums + i * 8;
      const int32x4_t low = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(of[i])));
      const int32x4_t high = vreinterpretq_s32_u32(vmovl_high_u16(of[i]));
      vst1q_s32(to, begin == 0 ? low : vaddq_s32(vld1q_s32(to), low));
      vst1q_s32(to + 4, begin == 0 ? high : vaddq_s32(vld1q_s32(to + 4), high));
    }
  }
}
#endif

void sum_rows(const std::uint32_t* bits, std::int64_t words, const std::uint8_t* codes,
              std::int64_t stride, std::int64_t count, std::int32_t* sums) {
#ifdef __ARM_NEON
  if (words == 0) {
    for (std::int64_t j = 0; j < count; ++j) sums[j] = 0;
    return;
  }
  std::int64_t first = 0;
  for (; first + 32 < count; first += 64) {
    sum_columns<4>(bits, words, codes + first, stride, sums + first);
  }
  for (; first < count; first += 16) {
    sum_columns<1>(bits, words, codes + first, stride, sums + first);
  }
#else
  for (std::int64_t j = 0; j < count; ++j) sums[j] = 0;
  for (std::int64_t w = 0; w < words; ++w) {
    for (std::uint32_t left = bits[w]; left != 0; left &= left - 1) {
      const std::uint8_t* const row = codes + (w * 32 + __builtin_ctz(left)) * stride;
      for (std::int64_t j = 0; j < count; ++j) sums[j] += row[j];
    }
  }
#endif
}

std::int32_t sum_of(const std::uint8_t* codes, std::int64_t depth) {
  std::int32_t sum = 0;
  for (std::int64_t k = 0; k < depth; ++k) sum += codes[k];
  return sum;
}

#ifdef TESSERA_DOT_PRODUCT
TESSERA_DOT_PRODUCT std::int32_t multiply_fours(const std::uint8_t* codes, std::int64_t depth,
                                                const std::uint8_t* weights, std::int64_t stride,
                                                std::int64_t count, std::int32_t* sums) {
  constexpr int columns = dot_bytes / 4;  // of a vector
  constexpr int parts = 16 / columns;
  const std::int32_t more = dot_shift > 0 ? dot_shift * sum_of(codes, (depth + 3) / 4 * 4) : 0;
  for (std::int64_t first = 0; first < count; first += 16) {
    DotVector of[parts] = {};
    for (std::int64_t k = 0; k < depth; k += 4) {
      std::uint32_t four;
      __builtin_memcpy(&four, codes + k, 4);
      if (four == 0) continue;
      const DotVector everywhere = all_of(four);
      const std::uint8_t* const from = weights + k * stride + first * 4;
      for (int part = 0; part < parts; ++part) {
        of[part] = add_dots(of[part], everywhere, shifted(load_bytes(from + part * dot_bytes)));
      }
    }
    for (int part = 0; part < parts; ++part) {
      store_dots(sums + first + part * columns, of[part], more);
    }
  }
  return sum_of(codes, depth);
}
#endif

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
  return sum_of(codes, depth);
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
    if (row.inverse != nullptr) {
      // As `code_within` of finish_many.hpp: the quotient of a division, by five products.
      const float most = row.floors ? last + 0.5f : last;
      for (std::int64_t j = 0; j < end; ++j) {
        const float step = row.step[first + j];
        const float inverse = row.inverse[first + j];
        const float above = values[first + j] - row.lower[first + j];
        const float positive = above > 0 ? above : 0.0f;
        const float x = positive < most * step ? positive : most * step;
        const float about = x * inverse;
        const float nearer = __builtin_fmaf(__builtin_fmaf(-about, step, x), inverse, about);
        whole[j] = __builtin_fmaf(__builtin_fmaf(-nearer, step, x), inverse, nearer);
      }
    } else {
      for (std::int64_t j = 0; j < end; ++j) {
        whole[j] = (values[first + j] - row.lower[first + j]) / row.step[first + j];
      }
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

const bits::Table& bit_loops_table() {
  static const bits::Table table = [] {
    bits::Table loops = {count,
                         dot,
                         spread,
                         spread_codes<std::uint16_t>,
                         add_codes<std::uint8_t>,
                         add_codes<std::uint16_t>,
                         sum_rows,
                         multiply,
                         nullptr,
                         finish_values,
                         finish_codes};
#ifdef TESSERA_DOT_PRODUCT
    if (has_dot_product()) {
      loops.dot = dot_by_fours;
      loops.multiply_fours = multiply_fours;
    }
#endif
#ifdef TESSERA_BIT_COUNT
    if (has_bit_count()) loops.count = count_by_vectors;
#endif
    return loops;
  }();
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
