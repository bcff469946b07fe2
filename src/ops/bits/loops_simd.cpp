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
    DotSums sums[columns_at_once];
    for (auto& sum : sums) sum = no_dots();
    DotSums of_a = no_dots();
    std::int64_t k = begin;
    for (; k + dot_bytes <= end; k += dot_bytes) {
      const DotBytes left = load_bytes(a + k);
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

void spread_wide(const std::uint32_t* row, std::int64_t plane_words, int bits, std::int64_t words,
                 std::uint16_t* codes) {
  spread_codes(row, plane_words, bits, words, codes);
}

template <class Code>
void add_codes(const Code* codes, std::int64_t count, std::uint32_t* sums) {
  for (std::int64_t j = 0; j < count; ++j) sums[j] += codes[j];
}

void add_bytes(const std::uint8_t* codes, std::int64_t count, std::uint32_t* sums) {
  add_codes(codes, count, sums);
}

void add_wide(const std::uint16_t* codes, std::int64_t count, std::uint32_t* sums) {
  add_codes(codes, count, sums);
}

}  // namespace

const bits::Table& bit_loops_table() {
  static const bits::Table table = [] {
    bits::Table loops = {count, dot, spread, spread_wide, add_bytes, add_wide};
#ifdef TESSERA_DOT_PRODUCT
    if (has_dot_product()) loops.dot = dot_by_fours;
#endif
#ifdef TESSERA_BIT_COUNT
    if (has_bit_count()) loops.count = count_by_vectors;
#endif
    return loops;
  }();
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
