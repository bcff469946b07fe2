// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>

#include "ops/sddmm/cuda/edges/launch.hpp"
#include "tessera/graph/graph.hpp"

/// An order of edges for graphs whose neighbouring rows share sources.
///
/// A panel is some consecutive rows; its edges are ordered by source. A source's features are then
/// loaded once for all of the panel's rows that have it, and those of the rows, few enough for the
/// first-level cache, again and again:
///
///     CSR      row 0: a b d   row 1: a c d   row 2: a b c d        a b d a c d a b c d
///     panel    rows 0 to 2 by source                               a a a b b c c d d d
namespace tessera::ops {

inline constexpr VertexId panel_rows = 64;
inline constexpr EdgeOffset panel_edges = 1 << 16;  ///< at most; longer rows are cut

/// Where the panel ends that begins at the edge `begin`, of which `row` is the first row.
inline EdgeOffset panel_end(const Graph& graph, EdgeOffset begin, VertexId row) {
  const VertexId last = std::min<VertexId>(row + panel_rows, graph.num_rows());
  return std::min(graph.row_offsets()[last], begin + panel_edges);
}

struct DevicePanels {
  Buffer<OrderedEdge> order;
};

/// Made at the first call for a place's memory, then kept with the graph, which has less than 2^32
/// edges.
std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, const Place& place);

}  // namespace tessera::ops
