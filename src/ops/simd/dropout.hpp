// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/dropout.hpp"

#include "ops/simd/lanes.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <immintrin.h>
#endif

/// `Dropout::factor` for many elements at once. `Random` itself is not used here: its functions are
/// shared inline ones (see isa.hpp).
namespace tessera::ops::TESSERA_ISA {

// Products of 32-bit words with all their 64 bits. Instruction sets multiply only half of a
// vector's words at a time, each in its own way, which compilers do not find out from loops.

typedef std::uint32_t WordVector __attribute__((vector_size(vector_bytes)));
typedef std::uint64_t LongVector __attribute__((vector_size(vector_bytes)));

struct WideProduct {
  WordVector high;
  WordVector low;
};

#if defined(__aarch64__)

TESSERA_INLINE WideProduct multiply_wide(WordVector words, std::uint32_t factor) {
  const auto lanes_of = (uint32x4_t)words;
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(lanes_of), factor));
  const uint32x4_t second = vreinterpretq_u32_u64(vmull_high_n_u32(lanes_of, factor));
  return {(WordVector)vuzp2q_u32(first, second), (WordVector)vuzp1q_u32(first, second)};
}

#elif defined(__SSE2__)

/// The even words of both, multiplied.
TESSERA_INLINE LongVector multiply_even(LongVector a, LongVector b) {
#if defined(__AVX512F__)
  // The form without a mask reads an undefined vector, of which GCC 12 warns.
  return (LongVector)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (LongVector)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  return (LongVector)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

TESSERA_INLINE WideProduct multiply_wide(WordVector words, std::uint32_t factor) {
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

/// Counters that one call of `philox_words` works on side by side.
inline constexpr int philox_batch = 16;

/// The lanes of two vectors in turns: what comes of their lower halves, then of their upper ones.
template <class Vector>
TESSERA_INLINE void interleave(Vector a, Vector b, Vector& lower, Vector& upper) {
  constexpr int n = sizeof(Vector) / sizeof(a[0]);
  [&]<int... I>(std::integer_sequence<int, I...>) TESSERA_INLINED {
    lower = __builtin_shufflevector(a, b, (I / 2 + I % 2 * n)...);
    upper = __builtin_shufflevector(a, b, (n / 2 + I / 2 + I % 2 * n)...);
  }
  (std::make_integer_sequence<int, n>{});
}

/// The four words of each of `philox_batch` counters, word w of counter c at words[4 * c + w].
/// `load(first, low, high)` gives the halves of as many counters as a vector has lanes. They go
/// side by side, and all vectors stay in registers.
template <class Load>
TESSERA_INLINE void philox_words(const DropoutConstants& constants, Load&& load,
                                 std::uint32_t* words) {
  constexpr int width = vector_bytes / 4;
  constexpr int groups = philox_batch / width;
  WordVector c0[groups], c1[groups], c2[groups], c3[groups];
  unrolled<groups>([&](auto g) TESSERA_INLINED {
    load(std::integral_constant<int, g.value * width>{}, c0[g], c1[g]);
    c2[g] = WordVector{} + constants.step;
    c3[g] = WordVector{} + constants.layer;
  });
  std::uint32_t key0 = constants.key[0];
  std::uint32_t key1 = constants.key[1];
  for (int round = 0; round < 10; ++round) {
    unrolled<groups>([&](auto g) TESSERA_INLINED {
      const WideProduct a = multiply_wide(c0[g], 0xD2511F53u);
      const WideProduct b = multiply_wide(c2[g], 0xCD9E8D57u);
      c0[g] = b.high ^ c1[g] ^ key0;
      c1[g] = b.low;
      c2[g] = a.high ^ c3[g] ^ key1;
      c3[g] = a.low;
    });
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  unrolled<groups>([&](auto g) TESSERA_INLINED {
    WordVector even[2], odd[2], all[4];
    interleave(c0[g], c2[g], even[0], even[1]);
    interleave(c1[g], c3[g], odd[0], odd[1]);
    interleave(even[0], odd[0], all[0], all[1]);
    interleave(even[1], odd[1], all[2], all[3]);
    __builtin_memcpy(words + g.value * 4 * width, all, sizeof all);
  });
}

/// Words of counters from an array.
static inline void philox_words_at(const DropoutConstants& constants, const std::uint64_t* counters,
                                   std::uint32_t* words) {
  constexpr int width = vector_bytes / 4;
  philox_words(
      constants,
      [&](auto first, WordVector& low, WordVector& high) TESSERA_INLINED {
        for (int i = 0; i < width; ++i) {
          low[i] = static_cast<std::uint32_t>(counters[first.value + i]);
          high[i] = static_cast<std::uint32_t>(counters[first.value + i] >> 32);
        }
      },
      words);
}

/// Words of counters from `counter` on.
static inline void philox_words_from(const DropoutConstants& constants, std::uint64_t counter,
                                     std::uint32_t* words) {
  constexpr int width = vector_bytes / 4;
  WordVector lane_numbers;
  for (int i = 0; i < width; ++i) lane_numbers[i] = static_cast<std::uint32_t>(i);
  const auto counter_low = static_cast<std::uint32_t>(counter);
  const auto counter_high = static_cast<std::uint32_t>(counter >> 32);
  philox_words(
      constants,
      [&](auto first, WordVector& low, WordVector& high) TESSERA_INLINED {
        low = lane_numbers + (counter_low + static_cast<std::uint32_t>(first.value));
        // A comparison that holds is -1: the carry.
        high = counter_high - (WordVector)(low < counter_low);
      },
      words);
}

/// factors[i] = what an element with the word words[i] is multiplied by.
template <class Scalar>
TESSERA_INLINE void factors_of_words(const DropoutConstants& constants, const std::uint32_t* words,
                                     std::int64_t count, Scalar* factors) {
  const auto kept = static_cast<Scalar>(constants.kept_factor);
  const std::uint32_t threshold = constants.threshold;
  for (std::int64_t i = 0; i < count; ++i) {
    factors[i] = words[i] >= threshold ? kept : Scalar{0};
  }
}

/// factors[i] = what element `first + i` is multiplied by, for i in [0, count).
template <class Scalar>
static void dropout_factors(const DropoutConstants& constants, std::uint64_t first,
                            std::int64_t count, Scalar* factors) {
  constexpr std::int64_t batch_elements = 4 * philox_batch;
  std::uint32_t words[batch_elements];
  // The range may begin inside a counter's four elements.
  std::int64_t skipped = static_cast<std::int64_t>(first % 4);
  std::uint64_t counter = first / 4;
  for (std::int64_t done = 0; done < count; skipped = 0) {
    philox_words_from(constants, counter, words);
    const std::int64_t available = batch_elements - skipped;
    const std::int64_t taken = count - done < available ? count - done : available;
    factors_of_words(constants, words + skipped, taken, factors + done);
    done += taken;
    counter += philox_batch;
  }
}

}  // namespace tessera::ops::TESSERA_ISA
