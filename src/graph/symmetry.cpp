// SPDX-License-Identifier: Apache-2.0
#include "graph/symmetry.hpp"

#include <span>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::detail {
namespace {

struct Tally {
  EdgeOffset loops = 0;
  EdgeOffset below = 0;  ///< edges to a lower vertex: left of the diagonal
  EdgeOffset above = 0;
  EdgeOffset twins = 0;  ///< edges below that have a twin above
  bool same_weights = true;

  friend Tally operator+(const Tally& a, const Tally& b) {
    return {a.loops + b.loops, a.below + b.below, a.above + b.above, a.twins + b.twins,
            a.same_weights && b.same_weights};
  }
};

/// The first element that is not less than `wanted`, or the last of all. No branch depends on what
/// is compared: most rows are short, and there mispredicted branches cost more than the loads.
const VertexId* lower_bound_or_last(std::span<const VertexId> sorted, VertexId wanted) {
  const VertexId* first = sorted.data();
  for (std::size_t left = sorted.size(); left > 1;) {
    const std::size_t half = left / 2;
    first += first[half - 1] < wanted ? half : 0;
    left -= half;
  }
  return first;
}

/// Looks for the twins of the edges below the diagonal only: as many above have one.
void tally_row(const Graph& graph, VertexId row, Tally& tally) {
  const bool weighted = graph.is_weighted();
  for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
    const VertexId col = graph.col_indices()[k];
    if (col >= row) {
      const bool is_loop = col == row;
      tally.loops += is_loop ? 1 : 0;
      tally.above += graph.row_offsets()[row + 1] - k - (is_loop ? 1 : 0);
      break;
    }
    ++tally.below;
    const auto twins = graph.neighbours(col);
    if (twins.empty()) continue;
    const VertexId* const twin = lower_bound_or_last(twins, row);
    if (*twin != row) continue;
    ++tally.twins;
    if (weighted && tally.same_weights) {
      const EdgeOffset twin_edge = twin - graph.col_indices().data();
      tally.same_weights = graph.weight(row, k) == graph.weight(col, twin_edge);
    }
  }
}

}  // namespace

Symmetry symmetry_of(const Graph& graph) {
  const auto tally_rows = [&](std::int64_t begin, std::int64_t end) {
    Tally tally;
    for (std::int64_t row = begin; row < end; ++row) {
      tally_row(graph, static_cast<VertexId>(row), tally);
    }
    return tally;
  };
  const Tally tally =
      parallel_reduce(graph.num_rows(), even_grain(graph.num_rows(), 64), Tally{}, tally_rows,
                      [](const Tally& a, const Tally& b) { return a + b; });
  return {tally.loops, tally.below + tally.above - 2 * tally.twins, tally.same_weights};
}

Graph undirected(const Graph& graph) {
  return symmetry_of(graph).of_pattern() ? graph : symmetrised(graph);
}

}  // namespace tessera::detail
