// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/graph.hpp"

namespace tessera::app {

/// How near the neighbours of a graph's rows lie to each other: what a reordering improves.
struct Locality {
  VertexId bandwidth = 0;   ///< max |i - j| over edges
  double mean_gap = 0;      ///< mean |i - j|
  double window_reuse = 0;  ///< edges / distinct columns, over row windows
};

Locality measure_locality(const Graph& graph);

}  // namespace tessera::app
