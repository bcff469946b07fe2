// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/dropout.hpp"

#ifndef TESSERA_ISA
#error "this header is for *_simd.cpp files, which are compiled once per instruction set"
#endif

/// `Dropout::factor` for many elements at once. `Random` itself is not used here: its functions are
/// shared inline ones (see isa.hpp).
namespace tessera::ops::TESSERA_ISA {

/// Counters that one call of `philox_words` works on side by side.
inline constexpr int philox_batch = 16;

/// The four words of each of `philox_batch` counters, word w of counter c at words[4 * c + w].
/// Written as loops over the counters, which the compiler turns into widening multiplications.
static inline void philox_words(const DropoutConstants& constants, const std::uint64_t* counters,
                                std::uint32_t* words) {
  std::uint32_t c0[philox_batch], c1[philox_batch], c2[philox_batch], c3[philox_batch];
  for (int i = 0; i < philox_batch; ++i) {
    c0[i] = static_cast<std::uint32_t>(counters[i]);
    c1[i] = static_cast<std::uint32_t>(counters[i] >> 32);
    c2[i] = constants.step;
    c3[i] = constants.layer;
  }
  std::uint32_t key0 = constants.key[0];
  std::uint32_t key1 = constants.key[1];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < philox_batch; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ key0;
      c1[i] = static_cast<std::uint32_t>(b);
      c2[i] = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ key1;
      c3[i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  for (int i = 0; i < philox_batch; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
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
