// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// A translation that can be repeated, to measure it: its rows already lie on the device, where the
/// tiles stay. Columns that fewer than `min_uses` rows of a window use go to a rest.
std::function<void()> prepared_translation(const Graph& graph, int height, Side side,
                                           const Place& place, int min_uses = 1);

/// The same for 2:4 tiles.
std::function<void()> prepared_quads(const Graph& graph, int height, Side side, const Place& place);

}  // namespace tessera::tiles
