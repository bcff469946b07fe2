// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"

#include "sample/draw_formula.hpp"

namespace tessera::sample {

/// The edges that can be drawn, by target: those of weight 0 are left out, and where there are
/// times a target's edges stand in their order, ties as in the graph.
struct Candidates {
  SharedArray<EdgeOffset> offsets;      ///< where the edges of each target begin
  SharedArray<VertexId> sources;        ///< of each edge
  SharedArray<EdgeOffset> positions;    ///< of each edge in the graph; empty: they are the same
  SharedArray<std::int64_t> times;      ///< of each edge; empty: there are none
  SharedArray<float> weights;           ///< of each edge; empty: all are alike
  SharedArray<double> running_weights;  ///< of each edge: the sum of its target's weights up to it

  VertexId num_vertices() const noexcept { return static_cast<VertexId>(offsets.size() - 1); }
  EdgeOffset position(EdgeOffset candidate) const noexcept {
    return positions.empty() ? candidate : positions[candidate];
  }
  CandidateLists lists() const noexcept {
    const auto data = [](const auto& array) { return array.empty() ? nullptr : array.data(); };
    return {offsets.data(), data(sources), data(times), data(weights), data(running_weights)};
  }
};

/// What is known about edges beside their ends. Times of vertices are those of sources.
struct EdgeKnowledge {
  std::span<const float> edge_weights;
  std::span<const std::int64_t> edge_times;
  std::span<const std::int64_t> vertex_times;

  bool is_any() const noexcept {
    return !edge_weights.empty() || !edge_times.empty() || !vertex_times.empty();
  }
};

/// Throws `invalid_argument` for knowledge of the wrong size, `bad_data` for weights that are
/// negative or not finite.
Candidates candidates_of(const SharedArray<EdgeOffset>& offsets,
                         const SharedArray<VertexId>& sources, const EdgeKnowledge& knowledge);

}  // namespace tessera::sample
