// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "tessera/graph/graph.hpp"

/// Panels: some consecutive rows whose edges are taken in the order of their sources.
namespace tessera::tiles {

inline constexpr VertexId panel_rows = 64;
inline constexpr EdgeOffset panel_edges = 1 << 16;  ///< at most; longer rows are cut

/// Where the panel ends that begins at the edge `begin`, of which `row` is the first row.
inline EdgeOffset panel_end(const Graph& graph, EdgeOffset begin, VertexId row) {
  const VertexId last = std::min<VertexId>(row + panel_rows, graph.num_rows());
  return std::min(graph.row_offsets()[last], begin + panel_edges);
}

/// So many panels are looked at: the i-th begins at row num_rows * (2 i + 1) / (2 * so many).
inline constexpr VertexId sampled_panels = 16;

/// How often a source of a panel occurs in it, on the average of a few. Kept with the graph.
double panel_reuse(const Graph& graph);

/// From now on `panel_reuse` returns what these panels say.
void know_panels(const Graph& graph, EdgeOffset edges, EdgeOffset distinct_sources);

}  // namespace tessera::tiles
