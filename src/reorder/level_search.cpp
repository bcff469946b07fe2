// SPDX-License-Identifier: Apache-2.0
#include "reorder/level_search.hpp"

#include <algorithm>
#include <utility>

namespace tessera::reorder::detail {

LevelSearch::LevelSearch(const Graph& graph)
    : graph_(graph), placed_(static_cast<std::size_t>(graph.num_rows())), seen_in_(placed_.size()) {
  order_.reserve(placed_.size());
}

void LevelSearch::append_breadth_first(VertexId start, NeighbourOrder neighbours) {
  if (is_placed(start)) return;
  const auto degree_then_id = [&](VertexId a, VertexId b) {
    return std::pair{graph_.degree(a), a} < std::pair{graph_.degree(b), b};
  };
  std::size_t head = order_.size();
  const auto place = [&](VertexId vertex) {
    placed_[static_cast<std::size_t>(vertex)] = 1;
    order_.push_back(vertex);
  };
  place(start);
  while (head < order_.size()) {
    const auto first_new = static_cast<std::ptrdiff_t>(order_.size());
    for (const VertexId neighbour : graph_.neighbours(order_[head++])) {
      if (!is_placed(neighbour)) place(neighbour);
    }
    if (neighbours == NeighbourOrder::by_degree) {
      std::sort(order_.begin() + first_new, order_.end(), degree_then_id);
    }
  }
}

LevelSearch::Levels LevelSearch::levels_from(VertexId root) {
  ++search_;
  queue_.assign(1, root);
  seen_in_[static_cast<std::size_t>(root)] = search_;
  Levels levels;
  std::size_t level_begin = 0;
  while (level_begin < queue_.size()) {
    const std::size_t level_end = queue_.size();
    levels.last_vertex = queue_[level_begin];
    for (std::size_t i = level_begin; i < level_end; ++i) {
      const VertexId vertex = queue_[i];
      if (std::pair{graph_.degree(vertex), vertex} <
          std::pair{graph_.degree(levels.last_vertex), levels.last_vertex}) {
        levels.last_vertex = vertex;
      }
      for (const VertexId neighbour : graph_.neighbours(vertex)) {
        if (std::exchange(seen_in_[static_cast<std::size_t>(neighbour)], search_) != search_) {
          queue_.push_back(neighbour);
        }
      }
    }
    level_begin = level_end;
    ++levels.count;
  }
  return levels;
}

VertexId LevelSearch::pseudo_peripheral_vertex(VertexId start) {
  VertexId root = start;
  Levels levels = levels_from(root);
  for (;;) {
    const Levels farther = levels_from(levels.last_vertex);
    if (farther.count <= levels.count) return root;
    root = std::exchange(levels, farther).last_vertex;
  }
}

}  // namespace tessera::reorder::detail
