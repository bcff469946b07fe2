// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/shared_array.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/dot_tile.hpp"

namespace tessera::tiles {

/// The tiles of a graph, window after window, and the lists of their edges.
struct DotTiles {
  SharedArray<DotTile> tiles;
  SharedArray<std::uint32_t> codes;

  /// The same bytes.
  friend bool operator==(const DotTiles&, const DotTiles&) = default;
};

/// `tiled` is that side of the graph in windows of `dot_tile_height` rows. The same bytes for any
/// number of threads. Throws `unsupported` for more than 2^31 - 1 tiles or blocks of codes.
DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side);

/// The same bytes, made in a place and brought back.
DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side, const Place& place);

/// As many blocks as so many edges on tiles can have at most. Throws as above.
std::int64_t most_code_blocks(EdgeOffset num_edges, std::int64_t num_tiles);

/// Why a graph has no such lists, in words; empty if it has. Numbers in a window have 32 bits.
std::string why_no_dot_tiles(const Graph& graph);

}  // namespace tessera::tiles
