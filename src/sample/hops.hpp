// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/types.hpp"

#include "sample/candidates.hpp"

namespace tessera::sample {

/// How all hops draw.
struct HopOptions {
  std::vector<std::int64_t> fan_outs;
  bool replace = false;
  bool disjoint = false;
  bool latest = false;
  bool induced = false;
  std::uint64_t seed = 0;
};

/// How one hop of a step draws.
HopRules rules_of(const HopOptions& options, std::uint64_t step, std::size_t hop);

/// Throws `invalid_argument` for options that contradict each other or the candidates.
void check_hops(const HopOptions& options, const Candidates& candidates);

/// What was drawn, hop after hop, with vertices numbered as `NeighbourSample` has them. The edges
/// of a target stand together, targets in the order of their numbers.
struct Hops {
  std::vector<VertexId> vertices;
  std::vector<VertexId> trees;  ///< empty unless disjoint
  std::vector<std::int64_t> vertices_until;
  std::vector<std::int64_t> edges_until;
  std::vector<EdgeOffset> offsets;  ///< of each target's edges: vertices of the last hop are none
  std::vector<VertexId> sources;    ///< of each edge, by number
  std::vector<EdgeOffset> candidates;  ///< each edge drawn
};

/// Throws `invalid_argument` for seeds out of range, and for times that are missing or of no use.
/// Returns the times that edges are compared with: none where the graph has no edges.
std::span<const std::int64_t> checked_times(const Candidates& candidates,
                                            std::span<const VertexId> seeds,
                                            std::span<const std::int64_t> seed_times);

/// Throws as `checked_times`.
Hops draw_hops(const Candidates& candidates, const HopOptions& options,
               std::span<const VertexId> seeds, std::uint64_t step,
               std::span<const std::int64_t> seed_times);

}  // namespace tessera::sample
