// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/tiles/quad_tiles.hpp"

/// Values of edges beside 2:4 tiles: for each step, 16 rows and lane of a warp eight numbers, two
/// for each register of the sparse operand (tiles/quad_fragment.hpp). docs/design/tile_format.md
/// draws it.
namespace tessera::tiles {

/// Where each entry's edge stands in CSR; -1 where there is none. `quads` is that side of the
/// graph, which has less than 2^31 edges.
SharedArray<std::int32_t> place_quad_values(const Graph& graph, const QuadTiles& quads, Side side);

/// The same bytes, made in a place from tiles that are made there, and brought back.
SharedArray<std::int32_t> place_quad_values(const Graph& graph, int height, Side side,
                                            const Place& place);

}  // namespace tessera::tiles
