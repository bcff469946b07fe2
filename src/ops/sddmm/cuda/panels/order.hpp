// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/sddmm/cuda/panels/launch.hpp"
#include "tessera/graph/graph.hpp"

/// An order of edges in which rows of V are used by all targets of a panel at once.
///
/// A panel is some consecutive rows; its edges are ordered by source. A source's features are then
/// loaded once for all of the panel's rows that have it, and those of the rows, few enough for
/// shared memory, once for all:
///
///     CSR      row 0: a b d   row 1: a c d   row 2: a b c d        a b d a c d a b c d
///     panel    rows 0 to 2 by source                               a a a b b c c d d d
///
/// Panels of many edges are cut into pieces, each with all rows of its panel and some of the
/// sources.
namespace tessera::ops {

struct DevicePanels {
  Buffer<PanelEdge> order;
  Buffer<PanelPiece> pieces;  ///< the largest first
};

/// Made at the first call for a place's memory, then kept with the graph. No panel has
/// `most_panel_edges`.
std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, int rows, const Place& place);

}  // namespace tessera::ops
