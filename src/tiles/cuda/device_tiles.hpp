// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cuda/rows.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// Tiles on a GPU. The offsets are on the host, too, where work is divided.
struct DeviceTiles {
  TiledGraph host;  ///< without columns and words
  Buffer<EdgeOffset> step_offsets;
  Buffer<EdgeOffset> tile_offsets;
  Buffer<VertexId> columns;
  Buffer<std::uint32_t> words;
  /// The edges that are not on tiles; null where all are.
  std::shared_ptr<const cuda::DeviceRows> rest;
};

struct TileOptions {
  int height = 64;
  Side side = Side::forward;
  int min_uses = 1;  ///< columns of a window that fewer rows use are not on tiles
};

/// How the edges of windows are written down.
enum class WindowBits {
  tiles,    ///< as in a TiledGraph
  row_sets  ///< column by column: the rows that use it, in the low bits of 32-bit words first
};

/// Made on the GPU, from rows that are copied there for the purpose unless they already lie there.
DeviceTiles translate_on_device(const Graph& graph, const TileOptions& options, const Place& place,
                                WindowBits bits = WindowBits::tiles);

/// The rows of a side of a graph, kept with it.
std::shared_ptr<const cuda::DeviceRows> side_rows(const Graph& graph, Side side,
                                                  const Place& place);

/// Which tiles stand for these: those of A for A^T where every edge is known to go both ways.
TileOptions kept_tiles(const Graph& graph, TileOptions options);

/// Translated at the first call for these options and a place's memory, then kept with the graph.
std::shared_ptr<const DeviceTiles> device_tiles(const Graph& graph, const TileOptions& options,
                                                const Place& place);

}  // namespace tessera::tiles
