// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::reorder::detail {

enum class NeighbourOrder { by_id, by_degree };

/// Breadth-first searches over a graph whose edges go both ways. Vertices are placed component by
/// component; a search that places none leaves no trace.
class LevelSearch {
 public:
  explicit LevelSearch(const Graph& graph);

  bool is_placed(VertexId vertex) const { return placed_[static_cast<std::size_t>(vertex)] != 0; }

  /// Places all vertices that `start` reaches, near ones first; nothing if `start` is placed.
  void append_breadth_first(VertexId start, NeighbourOrder neighbours);

  /// A vertex of the component of `start` that is (nearly) as far from others as any (George and
  /// Liu, 1979): again and again a vertex of lowest degree of the last level, while that adds
  /// levels.
  VertexId pseudo_peripheral_vertex(VertexId start);

  /// All vertices in the order they were placed.
  std::vector<VertexId> order() && { return std::move(order_); }

 private:
  struct Levels {
    std::int64_t count = 0;
    VertexId last_vertex = 0;  ///< of lowest degree in the last level, of equals the lowest
  };
  Levels levels_from(VertexId root);

  const Graph& graph_;
  std::vector<std::uint8_t> placed_;
  std::vector<VertexId> order_;
  std::vector<std::uint32_t> seen_in_;  ///< the last search that saw each vertex
  std::uint32_t search_ = 0;
  std::vector<VertexId> queue_;
};

}  // namespace tessera::reorder::detail
