// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tessera/core/types.hpp"
#include "tessera/ops/top_rows.hpp"

#ifdef __CUDACC__
#define TESSERA_ANYWHERE __host__ __device__
#else
#define TESSERA_ANYWHERE
#endif

namespace tessera::ops {

/// The bits of a float as a number in the order of the floats, and back.
TESSERA_ANYWHERE inline std::uint32_t ordered_bits(std::uint32_t bits) {
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
TESSERA_ANYWHERE inline std::uint32_t bits_in_order(std::uint32_t ordered) {
  return (ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered;
}

TESSERA_ANYWHERE inline TopKey top_key(float score, std::int64_t col) {
  const float number = score + 0.0F;  // -0 is as good as 0
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return (TopKey{ordered_bits(bits)} << 32) | (0xffffffffu - static_cast<std::uint32_t>(col));
}

TESSERA_ANYWHERE inline float score_of(TopKey key) {
  if (key == 0) return -INFINITY;
  const std::uint32_t bits = bits_in_order(static_cast<std::uint32_t>(key >> 32));
  float score = 0;
  std::memcpy(&score, &bits, sizeof(score));
  return score;
}
TESSERA_ANYWHERE inline VertexId col_of(TopKey key) {
  return key == 0 ? -1 : static_cast<VertexId>(0xffffffffu - static_cast<std::uint32_t>(key));
}

}  // namespace tessera::ops
