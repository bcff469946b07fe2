// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/dropout.hpp"

namespace tessera::cuda {

/// `ops::Dropout::word`: the same bits as on the CPU.
__device__ inline std::uint32_t dropout_word(const ops::DropoutConstants& constants,
                                             std::uint64_t element) {
  const std::uint64_t block = element / 4;
  std::uint32_t c0 = static_cast<std::uint32_t>(block);
  std::uint32_t c1 = static_cast<std::uint32_t>(block >> 32);
  std::uint32_t c2 = constants.step;
  std::uint32_t c3 = constants.layer;
  std::uint32_t k0 = constants.key[0];
  std::uint32_t k1 = constants.key[1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t a_high = __umulhi(0xD2511F53u, c0);
    const std::uint32_t a_low = 0xD2511F53u * c0;
    const std::uint32_t b_high = __umulhi(0xCD9E8D57u, c2);
    const std::uint32_t b_low = 0xCD9E8D57u * c2;
    c0 = b_high ^ c1 ^ k0;
    c1 = b_low;
    c2 = a_high ^ c3 ^ k1;
    c3 = a_low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const auto place = static_cast<unsigned>(element % 4);
  return place < 2 ? (place == 0 ? c0 : c1) : (place == 2 ? c2 : c3);
}

/// `ops::Dropout::factor`.
__device__ inline float dropout_factor(const ops::DropoutConstants& constants,
                                       std::uint64_t element) {
  return dropout_word(constants, element) >= constants.threshold
             ? static_cast<float>(constants.kept_factor)
             : 0.0f;
}

}  // namespace tessera::cuda
