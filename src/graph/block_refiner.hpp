// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "graph/weighted_graph.hpp"

namespace tessera::detail {

struct RefineOptions {
  int patience = 8;           ///< rounds without a better partition before it ends
  double worthwhile = 0.001;  ///< share by which the cut has to fall, or a round was in vain
  double boldness = 0.25;  ///< of the edges to its own block, what a vertex may lose at first sight
  std::function<void()> on_round = {};
};

/// What is wrong with a partition: first what does not fit, then what is cut.
struct Flaws {
  std::int64_t overweight = 0;  ///< by how much blocks are too heavy, together
  std::int64_t cut = 0;         ///< weight of the edges between blocks, both ways counted
  friend auto operator<=>(const Flaws&, const Flaws&) = default;
};

/// Moves vertices between blocks so that few edges are cut and no block is heavier than its limit,
/// where vertices are light enough for that. Rounds in which all vertices decide at once and moves
/// that spoil each other are taken back (Gilbert et al. 2024, "Jet"); the best partition seen is
/// kept. The same for any number of threads.
Flaws refine(const WeightedGraph& graph, std::span<const std::int64_t> limits,
             std::vector<std::int32_t>& block_of, const RefineOptions& options);

}  // namespace tessera::detail
