// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// As `prepared_translation`; columns that fewer than `min_uses` rows of a window use go to a rest.
std::function<void()> prepared_split(const Graph& graph, int height, int min_uses, Side side,
                                     const Place& place);

}  // namespace tessera::tiles
