// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/core/placed_array.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::sample {

/// Which edges are drawn where they have times.
enum class TimeStrategy {
  uniform,  ///< any of those that are early enough
  latest,   ///< of those the latest, with no chance in it
};

/// Where a GPU that draws keeps what it reads of edges. The offsets of vertices lie in its memory.
enum class EdgeMemory {
  device,  ///< in its memory
  host,    ///< in pinned memory of this process, for graphs larger than that
};

struct NeighbourOptions {
  /// For each hop, seeds first, how many edges a vertex found there draws: -1 takes all of them, 0
  /// none.
  std::vector<std::int64_t> fan_outs = {};
  /// Draws with replacement: an edge may come several times, and a vertex with any edge gets as
  /// many as were asked for.
  bool replace = false;
  /// Every seed has a tree of its own: a vertex is numbered once for each tree that it is in.
  bool disjoint = false;
  /// Draws vertices alone: their graph has all edges between them, of a tree where trees are
  /// disjoint, that are not too late.
  bool induced = false;

  /// For each edge, in the order of the graph's columns. An edge comes in proportion to its weight;
  /// one of weight 0 is left out, as if it were not there.
  std::span<const float> edge_weights = {};

  /// Edges are taken only where their time, or that of their source, is not later than the seed's.
  /// At most one of the two, and only for trees that are disjoint.
  std::span<const std::int64_t> edge_times = {};
  std::span<const std::int64_t> vertex_times = {};
  TimeStrategy time_strategy = TimeStrategy::uniform;

  std::uint64_t seed = 0;

  /// Where batches are drawn, the same ones everywhere. Of a GPU's, vertices, edges and layers lie
  /// on it, in this memory (null: `default_memory(device)`), and its work is queued on the stream,
  /// which must outlive the sampler and its samples. A GPU draws no induced samples.
  Device device = {};
  MemoryResource* memory = nullptr;
  Stream stream = {};
  EdgeMemory edge_memory = EdgeMemory::device;

  Place place() const { return {device, memory, stream}; }
};

/// What was drawn for some seeds. Vertices are numbered anew: seeds first, then others in the order
/// in which drawn edges name them, hop after hop.
struct NeighbourSample {
  PlacedArray<VertexId> vertices;  ///< which vertex of the graph each number is
  PlacedArray<VertexId> trees;     ///< the seed each belongs to; empty unless disjoint
  /// How many vertices are numbered when a hop begins: entry 0 counts seeds, the last counts all.
  std::vector<std::int64_t> vertices_until;
  /// How many edges were drawn before a hop begins: from 0 to all. No hops but one if induced.
  std::vector<std::int64_t> edges_until;
  /// Where each drawn edge stands in the graph's columns, in the order of `layers.front()`.
  PlacedArray<EdgeOffset> edges;
  /// A graph for each layer of a model, the first one first. Its rows are the vertices that the
  /// next layer reads, its columns those vertices and one hop more; all are prefixes of one
  /// numbering, so that the last has a row for each seed. Values come along. If induced, all are
  /// the same graph of all vertices.
  std::vector<Graph> layers;
};

/// Draws neighbours of seeds from a square graph without scales, hop by hop: each vertex once, in
/// the hop after it was found. What is drawn depends on seed, step, hop, vertex and, where trees
/// are disjoint, the seed's place alone, so that any number of threads draws the same.
///
/// Without replacement a set of edges is drawn with the same chance as any other, by Floyd's
/// method: one number for each edge drawn, however many neighbours there are. Weighted edges are
/// drawn one after the other in proportion to the weights of those left.
class NeighbourSampler {
 public:
  NeighbourSampler(const Graph& graph, const NeighbourOptions& options);
  ~NeighbourSampler();
  NeighbourSampler(NeighbourSampler&&) noexcept;
  NeighbourSampler& operator=(NeighbourSampler&&) noexcept;

  /// A seed that is listed twice is numbered twice; unless trees are disjoint, both draw the same.
  /// `step` is a batch of training: another one draws others. Times of seeds are needed where edges
  /// have times; without them seeds take their own of `vertex_times`. Any number of threads may
  /// draw at once. A GPU is waited for at the end, when the sizes of the sample are known, and
  /// before hops that may draw millions of edges.
  NeighbourSample draw(std::span<const VertexId> seeds, std::uint64_t step = 0,
                       std::span<const std::int64_t> seed_times = {}) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace tessera::sample
