// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/sample/neighbours.hpp"

#include "sample/candidates.hpp"
#include "sample/hops.hpp"

/// Drawing on a GPU: the same samples as on the CPU, number for number. Implemented in
/// src/sample/cuda, or by saying that CUDA is absent.
namespace tessera::sample::on_gpu {

/// What batches are drawn from, where a GPU reads it.
struct PlacedGraph {
  Candidates candidates;
  SharedArray<float> values;  ///< empty: the graph has none
};

/// Throws as `candidates_of`.
PlacedGraph placed_graph(const Graph& graph, const EdgeKnowledge& knowledge, EdgeMemory memory,
                         const Place& place);

/// What `Hops` has, on a GPU. Arrays may have room for more.
struct PlacedHops {
  std::vector<std::int64_t> vertices_until;
  std::vector<std::int64_t> edges_until;
  Buffer<VertexId> vertices;
  Buffer<VertexId> trees;
  Buffer<EdgeOffset> offsets;
  Buffer<VertexId> sources;
  Buffer<VertexId> targets;  ///< of each edge, by number
  Buffer<EdgeOffset> candidates;
  std::vector<EdgeOffset> host_offsets;  ///< the same offsets in this process, where asked for

  std::int64_t num_vertices() const { return vertices_until.back(); }
  EdgeOffset num_edges() const { return edges_until.back(); }
};

/// From candidates that this GPU reads; `seed_times` as `checked_times` returns them. Waits for
/// sizes at the end, and before a hop that has no useful bound on what it draws.
PlacedHops draw_hops(const Candidates& candidates, const HopOptions& options,
                     std::span<const VertexId> seeds, std::uint64_t step,
                     std::span<const std::int64_t> seed_times, bool with_host_offsets,
                     const Place& place);

/// The sample that these are of, with the graphs of its layers in the same place. `repeats`: an
/// edge, or several between two vertices, may have been drawn again.
NeighbourSample sample_of(PlacedHops&& hops, const PlacedGraph& graph, std::size_t num_layers,
                          bool repeats, const Place& place);

}  // namespace tessera::sample::on_gpu
