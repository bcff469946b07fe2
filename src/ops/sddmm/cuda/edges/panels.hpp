// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/sddmm/cuda/edges/launch.hpp"
#include "tiles/panels.hpp"

/// An order of edges for graphs whose neighbouring rows share sources.
///
/// A panel is some consecutive rows; its edges are ordered by source. A source's features are then
/// loaded once for all of the panel's rows that have it, and those of the rows, few enough for the
/// first-level cache, again and again:
///
///     CSR      row 0: a b d   row 1: a c d   row 2: a b c d        a b d a c d a b c d
///     panel    rows 0 to 2 by source                               a a a b b c c d d d
namespace tessera::ops {

struct DevicePanels {
  Buffer<OrderedEdge> order;
};

/// Made at the first call for a place's memory, then kept with the graph, which has less than 2^32
/// edges.
std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, const Place& place);

}  // namespace tessera::ops
