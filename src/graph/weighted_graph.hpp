// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "tessera/core/shared_array.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// What a multilevel method works on: vertices that stand for several, and edges likewise. Every
/// edge goes both ways with one weight; loops are passed over. Copies share their arrays.
class WeightedGraph {
 public:
  /// A view of a graph whose edges go both ways: everything weighs 1.
  explicit WeightedGraph(const Graph& graph)
      : offsets_(graph.row_offsets()),
        neighbours_(graph.col_indices()),
        size_(graph.num_rows()),
        weight_(graph.num_rows()) {}

  WeightedGraph(SharedArray<EdgeOffset> offsets, SharedArray<VertexId> neighbours,
                SharedArray<std::int32_t> edge_weights, SharedArray<std::int32_t> vertex_weights,
                std::int64_t weight)
      : offsets_(std::move(offsets)),
        neighbours_(std::move(neighbours)),
        edge_weights_(std::move(edge_weights)),
        vertex_weights_(std::move(vertex_weights)),
        size_(static_cast<VertexId>(vertex_weights_.size())),
        weight_(weight) {}

  VertexId size() const { return size_; }
  EdgeOffset num_edges() const { return size_ > 0 ? offsets_[size_] : 0; }
  EdgeOffset degree(VertexId vertex) const { return offsets_[vertex + 1] - offsets_[vertex]; }
  std::int64_t weight() const { return weight_; }  ///< of all vertices
  std::int32_t weight(VertexId vertex) const {
    return vertex_weights_.empty() ? 1 : vertex_weights_[vertex];
  }

  /// Calls `visit(neighbour, weight of the edge)`.
  template <class Visit>
  void for_each_edge(VertexId vertex, Visit&& visit) const {
    const EdgeOffset end = offsets_[vertex + 1];
    if (edge_weights_.empty()) {
      for (EdgeOffset k = offsets_[vertex]; k < end; ++k) {
        if (neighbours_[k] != vertex) visit(neighbours_[k], std::int32_t{1});
      }
    } else {
      for (EdgeOffset k = offsets_[vertex]; k < end; ++k) visit(neighbours_[k], edge_weights_[k]);
    }
  }

 private:
  SharedArray<EdgeOffset> offsets_;
  SharedArray<VertexId> neighbours_;
  SharedArray<std::int32_t> edge_weights_;    ///< empty: 1 each, and there may be loops
  SharedArray<std::int32_t> vertex_weights_;  ///< empty: 1 each
  VertexId size_ = 0;
  std::int64_t weight_ = 0;
};

}  // namespace tessera::detail
