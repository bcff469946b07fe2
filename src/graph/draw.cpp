// SPDX-License-Identifier: Apache-2.0
#include "graph/draw.hpp"

#include <cmath>

namespace tessera::generate {

Entry nth_pair(std::uint64_t index) noexcept {
  // v is the largest number with v (v - 1) / 2 <= index; the square root may be off by one.
  auto v = static_cast<std::uint64_t>((1 + std::sqrt(1 + 8 * static_cast<double>(index))) / 2);
  while (num_pairs(v) > index) --v;
  while (num_pairs(v + 1) <= index) ++v;
  return {static_cast<VertexId>(index - num_pairs(v)), static_cast<VertexId>(v)};
}

}  // namespace tessera::generate
