// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <immintrin.h>
#endif

#include "ops/simd/vector.hpp"

/// Products of 32-bit words with all their 64 bits. Instruction sets multiply only half of a
/// vector's words at a time, each in its own way, which compilers do not find out from loops.
namespace tessera::ops::TESSERA_ISA {

typedef std::uint32_t WordVector __attribute__((vector_size(vector_bytes)));
typedef std::uint64_t LongVector __attribute__((vector_size(vector_bytes)));

struct WideProduct {
  WordVector high;
  WordVector low;
};

#if defined(__aarch64__)

static inline __attribute__((always_inline)) WideProduct multiply_wide(WordVector words,
                                                                       std::uint32_t factor) {
  const auto lanes_of = (uint32x4_t)words;
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(lanes_of), factor));
  const uint32x4_t second = vreinterpretq_u32_u64(vmull_high_n_u32(lanes_of, factor));
  return {(WordVector)vuzp2q_u32(first, second), (WordVector)vuzp1q_u32(first, second)};
}

#elif defined(__SSE2__)

/// The even words of both, multiplied.
static inline __attribute__((always_inline)) LongVector multiply_even(LongVector a, LongVector b) {
#if defined(__AVX512F__)
  // The form without a mask reads an undefined vector, of which GCC 12 warns.
  return (LongVector)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (LongVector)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  return (LongVector)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

static inline __attribute__((always_inline)) WideProduct multiply_wide(WordVector words,
                                                                       std::uint32_t factor) {
  const LongVector factors = LongVector{} + factor;
  const auto pairs = (LongVector)words;
  const LongVector even = multiply_even(pairs, factors);
  const LongVector odd = multiply_even(pairs >> 32, factors);
  constexpr std::uint64_t low_half = 0xFFFFFFFFu;
  return {(WordVector)((even >> 32) | (odd & ~low_half)),
          (WordVector)((even & low_half) | (odd << 32))};
}

#else

static inline WideProduct multiply_wide(WordVector words, std::uint32_t factor) {
  WideProduct product;
  for (int i = 0; i < vector_bytes / 4; ++i) {
    const std::uint64_t wide = std::uint64_t{factor} * words[i];
    product.high[i] = static_cast<std::uint32_t>(wide >> 32);
    product.low[i] = static_cast<std::uint32_t>(wide);
  }
  return product;
}

#endif

}  // namespace tessera::ops::TESSERA_ISA
