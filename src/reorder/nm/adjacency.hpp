// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "tessera/graph/graph.hpp"

namespace tessera::reorder::detail {

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The pattern of an undirected graph: the neighbours of a vertex are the entries of its row and of
/// its column. Or one side of a part of it: the rows of some columns, or the columns of rows.
struct Adjacency {
  explicit Adjacency(const Graph& graph)
      : size(graph.num_rows()), offsets(graph.row_offsets()), all(graph.col_indices()) {}
  Adjacency(std::span<const EdgeOffset> offsets_of_lists, std::span<const VertexId> lists)
      : size(static_cast<VertexId>(offsets_of_lists.size() - 1)),
        offsets(offsets_of_lists),
        all(lists) {}

  std::span<const VertexId> neighbours(VertexId vertex) const {
    const std::size_t begin = at(offsets[at(vertex)]);
    return all.subspan(begin, at(offsets[at(vertex) + 1]) - begin);
  }
  std::int64_t degree(VertexId vertex) const {
    return static_cast<std::int64_t>(neighbours(vertex).size());
  }
  EdgeOffset num_edges() const { return static_cast<EdgeOffset>(all.size()); }

  VertexId size;
  std::span<const EdgeOffset> offsets;
  std::span<const VertexId> all;
};

}  // namespace tessera::reorder::detail
