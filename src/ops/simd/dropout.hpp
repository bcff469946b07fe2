// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/dropout.hpp"

#include "ops/simd/lanes.hpp"
#include "ops/simd/wide_product.hpp"

#ifndef TESSERA_ISA
#error "this header is for *_simd.cpp files, which are compiled once per instruction set"
#endif

/// `Dropout::factor` for many elements at once. `Random` itself is not used here: its functions are
/// shared inline ones (see isa.hpp).
namespace tessera::ops::TESSERA_ISA {

/// Counters that one call of `philox_words` works on side by side.
inline constexpr int philox_batch = 16;

/// The four words of each of `philox_batch` counters, word w of counter c at words[4 * c + w]. As
/// many counters as a vector has lanes go side by side, and all vectors stay in registers.
static inline void philox_words(const DropoutConstants& constants, const std::uint64_t* counters,
                                std::uint32_t* words) {
  constexpr int width = vector_bytes / 4;
  constexpr int groups = philox_batch / width;
  std::uint32_t state[4][philox_batch];
  for (int i = 0; i < philox_batch; ++i) {
    state[0][i] = static_cast<std::uint32_t>(counters[i]);
    state[1][i] = static_cast<std::uint32_t>(counters[i] >> 32);
  }
  WordVector c0[groups], c1[groups], c2[groups], c3[groups];
  unrolled<groups>([&](auto g) __attribute__((always_inline)) {
    __builtin_memcpy(&c0[g], &state[0][g * width], sizeof c0[g]);
    __builtin_memcpy(&c1[g], &state[1][g * width], sizeof c1[g]);
    c2[g] = WordVector{} + constants.step;
    c3[g] = WordVector{} + constants.layer;
  });
  std::uint32_t key0 = constants.key[0];
  std::uint32_t key1 = constants.key[1];
  for (int round = 0; round < 10; ++round) {
    unrolled<groups>([&](auto g) __attribute__((always_inline)) {
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
  unrolled<groups>([&](auto g) __attribute__((always_inline)) {
    __builtin_memcpy(&state[0][g * width], &c0[g], sizeof c0[g]);
    __builtin_memcpy(&state[1][g * width], &c1[g], sizeof c1[g]);
    __builtin_memcpy(&state[2][g * width], &c2[g], sizeof c2[g]);
    __builtin_memcpy(&state[3][g * width], &c3[g], sizeof c3[g]);
  });
  for (int i = 0; i < philox_batch; ++i) {
    for (int w = 0; w < 4; ++w) words[4 * i + w] = state[w][i];
  }
}

/// factors[i] = what element `first + i` is multiplied by, for i in [0, count).
template <class Scalar>
static void dropout_factors(const DropoutConstants& constants, std::uint64_t first,
                            std::int64_t count, Scalar* factors) {
  constexpr std::int64_t batch_elements = 4 * philox_batch;
  std::uint64_t counters[philox_batch];
  std::uint32_t words[batch_elements];
  const auto kept = static_cast<Scalar>(constants.kept_factor);
  // The range may begin inside a counter's four elements.
  std::int64_t skipped = static_cast<std::int64_t>(first % 4);
  std::uint64_t counter = first / 4;
  for (std::int64_t done = 0; done < count; skipped = 0) {
    for (int i = 0; i < philox_batch; ++i) counters[i] = counter + static_cast<std::uint64_t>(i);
    philox_words(constants, counters, words);
    const std::int64_t available = batch_elements - skipped;
    const std::int64_t taken = count - done < available ? count - done : available;
    for (std::int64_t i = 0; i < taken; ++i) {
      factors[done + i] = words[skipped + i] >= constants.threshold ? kept : Scalar{0};
    }
    done += taken;
    counter += philox_batch;
  }
}

}  // namespace tessera::ops::TESSERA_ISA
