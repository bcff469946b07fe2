// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/nn/layer.hpp"
#include "tessera/sample/neighbours.hpp"
#include "tessera/train/options.hpp"

namespace tessera::train {

/// What the layers of a model read of edges that were drawn.
enum class DrawnEdges {
  plain,       ///< edges as they are: means, maxima and attention
  counted,     ///< a drawn edge stands for as many as there are for each drawn: sums
  normalised,  ///< the same, by GCN's degrees in the whole graph, with self loops
};

/// Plain for a model of one's own.
DrawnEdges drawn_edges_of(const nn::Layer& model);

/// Draws what a batch of neighbours is made of. Sums over drawn edges are scaled to what the sum
/// over all would be on average; where all are drawn, every layer computes what it does on the
/// whole.
class NeighbourDraws {
 public:
  /// `graph` lies in this process, or comes to it. One fan-out for each layer, seeds first.
  NeighbourDraws(const Graph& graph, const sample::NeighbourOptions& options, DrawnEdges edges);

  struct Layers {
    std::vector<VertexId> vertices;  ///< the sources of the first layer; seeds first
    std::vector<Graph> graphs;       ///< one for each layer, the first one first
  };
  Layers draw(std::span<const VertexId> seeds, std::uint64_t step) const;

 private:
  Graph counted(const Graph& drawn, std::span<const VertexId> vertices) const;
  Graph normalised(const Graph& drawn, std::span<const VertexId> vertices) const;
  /// How many edges of a vertex each drawn one stands for.
  float share_of(VertexId vertex, EdgeOffset drawn) const;

  Graph graph_;  ///< that edges are drawn from
  DrawnEdges edges_;
  bool draws_all_;
  SharedArray<float> scale_;         ///< normalised: D^-1/2 of all vertices
  SharedArray<float> loop_weights_;  ///< of self loops that the graph has itself; empty: all 1
  sample::NeighbourSampler sampler_;
};

}  // namespace tessera::train
