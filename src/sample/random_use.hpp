// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/random.hpp"

namespace tessera::sample {

/// Keeps what samples draw apart from what layers, links and training draw: layers of `Random`.
enum RandomUse : std::uint32_t {
  draw_neighbours = 0x7D000000u,
};

/// What one hop of one step draws with. Its elements are vertices, its steps blocks of two numbers.
constexpr Random random_of_hop(std::uint64_t seed, std::uint64_t step, std::uint32_t hop) noexcept {
  return Random(Random(seed, draw_neighbours, hop).bits64(step));
}

}  // namespace tessera::sample
