// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops {

/// The tiles of a graph with the lists of their edges (ops/sddmm/tile_lists.hpp), on a GPU.
struct DeviceDotTiles {
  Buffer<std::byte> tiles;  ///< DotTile<dot_tile_height> each
  Buffer<std::uint32_t> codes;
  int num_tiles = 0;
};

/// Made at the first call for a place's memory, then kept with the graph.
std::shared_ptr<const DeviceDotTiles> device_dot_tiles(const Graph& graph, const Place& place);

}  // namespace tessera::ops
