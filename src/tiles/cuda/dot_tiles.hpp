// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tiles/cuda/device_tiles.hpp"
#include "tiles/dot_tiles.hpp"

namespace tessera::tiles {

/// DotTiles on a GPU.
struct DeviceDotTiles {
  Buffer<DotTile> tiles;
  /// With room for as many as there can be: this process need not wait to know how many there are.
  Buffer<std::uint32_t> codes;
};

/// Made at the first call for a side and a place's memory, then kept with the graph.
std::shared_ptr<const DeviceDotTiles> device_dot_tiles(const Graph& graph, Side side,
                                                       const Place& place);

}  // namespace tessera::tiles
