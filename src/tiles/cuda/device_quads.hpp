// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::tiles {

/// 2:4 tiles on a GPU. The offsets are on the host, where work is divided.
struct DeviceQuads {
  QuadTiles host;                             ///< without columns and words
  SharedArray<EdgeOffset> half_step_offsets;  ///< of windows, in steps of 16 columns
  Buffer<VertexId> columns;
  Buffer<std::uint32_t> words;
  /// The edges that are not in quads; null where all are.
  std::shared_ptr<const cuda::DeviceRows> rest;
};

/// Puts the columns of windows, translated as row sets, into quads: the same bytes as
/// `translate_quads`. A warp takes a segment of a window, each lane an open quad. How many quads
/// there are decides how large the tiles are: the place's stream is waited for, once.
DeviceQuads arrange_quads(const DeviceTiles& sets, const Place& place);

/// Arranged on the GPU, from rows as `translate_on_device` takes them.
DeviceQuads arrange_on_device(const Graph& graph, const TileOptions& options, const Place& place);

/// Arranged at the first call for these options and a place's memory, then kept with the graph.
std::shared_ptr<const DeviceQuads> device_quads(const Graph& graph, const TileOptions& options,
                                                const Place& place);

}  // namespace tessera::tiles
