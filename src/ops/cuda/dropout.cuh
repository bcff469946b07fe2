// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/dropout.hpp"

/// `Dropout::factor` on a GPU: the same elements fall as on the CPU.
namespace tessera::ops {

/// The four words of one counter (Philox4x32-10, as in core/random.hpp).
__device__ inline uint4 philox_words(const DropoutConstants& constants, std::uint32_t step,
                                     std::uint64_t counter) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = step;
  std::uint32_t c3 = constants.layer;
  std::uint32_t key0 = constants.key[0];
  std::uint32_t key1 = constants.key[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t a_high = __umulhi(0xD2511F53u, c0);
    const std::uint32_t a_low = 0xD2511F53u * c0;
    const std::uint32_t b_high = __umulhi(0xCD9E8D57u, c2);
    const std::uint32_t b_low = 0xCD9E8D57u * c2;
    c0 = b_high ^ c1 ^ key0;
    c1 = b_low;
    c2 = a_high ^ c3 ^ key1;
    c3 = a_low;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// The step to draw for: what the clock shows, where there is one.
__device__ inline std::uint32_t present_step(const DropoutConstants& constants) {
  return constants.clock == nullptr ? constants.step
                                    : static_cast<std::uint32_t>(constants.clock->step);
}

/// Which of a counter's four elements are kept, a bit for each.
__device__ inline std::uint32_t kept_bits(const DropoutConstants& constants, std::uint32_t step,
                                          std::uint64_t counter) {
  const uint4 words = philox_words(constants, step, counter);
  const auto bit = [&](std::uint32_t word) { return word >= constants.threshold ? 1u : 0u; };
  return bit(words.x) | bit(words.y) << 1 | bit(words.z) << 2 | bit(words.w) << 3;
}

/// What one element is multiplied by.
__device__ inline float dropout_factor(const DropoutConstants& constants, std::uint64_t element) {
  const uint4 words = philox_words(constants, present_step(constants), element / 4);
  const auto place = static_cast<unsigned>(element % 4);
  const std::uint32_t word =
      place < 2 ? (place == 0 ? words.x : words.y) : (place == 2 ? words.z : words.w);
  return word >= constants.threshold ? static_cast<float>(constants.kept_factor) : 0.0f;
}

/// What elements `first` to `first + width - 1` are multiplied by.
template <int width>
__device__ inline void dropout_factors(const DropoutConstants& constants, std::uint64_t first,
                                       float (&factors)[width]) {
  const std::uint32_t step = present_step(constants);
  const auto kept = static_cast<float>(constants.kept_factor);
  const auto factor = [&](std::uint32_t word) { return word >= constants.threshold ? kept : 0.0f; };
  const auto shift = static_cast<int>(first % 4);
  // Four elements share a counter; a chunk that begins inside one needs one counter more.
  if (width % 4 == 0 && shift == 0) {
#pragma unroll
    for (int i = 0; i < width / 4; ++i) {
      const uint4 words = philox_words(constants, step, first / 4 + static_cast<std::uint64_t>(i));
      factors[4 * i] = factor(words.x);
      factors[4 * i + 1] = factor(words.y);
      factors[4 * i + 2] = factor(words.z);
      factors[4 * i + 3] = factor(words.w);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    factors[i] = dropout_factor(constants, first + static_cast<std::uint64_t>(i));
  }
}

}  // namespace tessera::ops
