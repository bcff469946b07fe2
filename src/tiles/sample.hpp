// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// What translation would make of a graph, estimated from some of its windows: what a cost model
/// needs without the cost of translating.
struct WindowSample {
  double columns = 0;          ///< distinct ones of all windows together
  double rest_edges = 0;       ///< of columns that too few rows use
  double longest_columns = 0;  ///< of the longest window, as far as its edges tell
};

/// Evenly spread windows, the same for the same graph. Columns that fewer than `min_uses` rows use
/// do not count. Kept with the graph.
WindowSample sample_windows(const Graph& graph, int height, Side side, int min_uses = 1);

}  // namespace tessera::tiles
