// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/rows.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/tile_values.hpp"

namespace tessera::tiles {

/// A ValueLayout on a GPU. The offsets stay on the host, where stages are made.
struct DeviceValueLayout {
  SharedArray<std::int32_t> unit_offsets;
  Buffer<std::uint32_t> starts;
  Buffer<std::int32_t> edges;
};

/// For windows of that height; made at the first call for a side and a place's memory, then kept
/// with the graph.
std::shared_ptr<const DeviceValueLayout> device_value_layout(const Graph& graph, int height,
                                                             Side side, const Place& place);

}  // namespace tessera::tiles
