// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/weighted_graph.hpp"

namespace tessera::detail {

/// How heavy the two halves should be, and how heavy they may be.
struct Halves {
  std::array<std::int64_t, 2> wanted;
  std::array<std::int64_t, 2> limits;
};

/// Splits a small graph in two: grows one half from several vertices, refines each attempt, and
/// keeps the best. The half of each vertex, 0 or 1.
std::vector<std::int32_t> bisected(const WeightedGraph& graph, const Halves& halves,
                                   std::uint64_t seed);

}  // namespace tessera::detail
