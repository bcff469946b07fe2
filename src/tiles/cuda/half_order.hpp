// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "tiles/cuda/device_tiles.hpp"

namespace tessera::tiles {

inline constexpr int halved_height = 128;

/// Tiles of windows of 128 rows on a GPU, the columns of a window in an order in which most tiles
/// concern one half of its rows alone: columns that both halves use, the first alone, the second
/// alone.
///
///     rows    0 ..  63   | both | first |        |
///     rows   64 .. 127   | both |       | second |
///
/// So half a window multiplies what it uses, and what both use is gathered once.
struct DeviceHalves {
  DeviceTiles tiles;
  Buffer<std::uint8_t> halves;  ///< here, of each tile: bit h says that half h has edges in it
};

DeviceHalves order_by_halves(const Graph& graph, Side side, const Place& place);

/// Ordered at the first call for a side and a place's memory, then kept with the graph.
std::shared_ptr<const DeviceHalves> device_halves(const Graph& graph, Side side,
                                                  const Place& place);

}  // namespace tessera::tiles
