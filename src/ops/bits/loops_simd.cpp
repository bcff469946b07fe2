// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/loops.hpp"

#ifdef __ARM_NEON
#include <arm_neon.h>
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
  spread_codes(row, plane_words, bits, words, codes);
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
  static const bits::Table table = {count, dot, spread, spread_wide, add_bytes, add_wide};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
