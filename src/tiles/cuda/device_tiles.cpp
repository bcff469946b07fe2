// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_tiles.hpp"

#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

/// Only for as long as they are translated: kernels on tiles do not need them.
cuda::DeviceRows lent_rows(const Graph& graph, Side side, Device device) {
  const SideRows rows = rows_of(graph, side);
  cuda::DeviceRows lent;
  lent.num_rows = rows.num_rows;
  lent.num_cols = rows.num_cols;
  lent.num_edges = static_cast<EdgeOffset>(rows.indices.size());
  lent.wide_offsets = cuda::to_device(rows.offsets, device);
  lent.indices = cuda::to_device(rows.indices, device);
  return lent;
}

DeviceTiles placed(TiledGraph tiled, Device device) {
  DeviceTiles tiles;
  tiles.columns = cuda::to_device(tiled.columns.span(), device);
  tiles.words = cuda::to_device(tiled.words.span(), device);
  tiles.host = std::move(tiled);
  tiles.host.columns = {};
  tiles.host.words = {};
  return tiles;
}

DeviceTiles split_on_host(const Graph& graph, const TileOptions& options, Device device) {
  SplitGraph split = translate_dense(graph, options.height, options.min_uses, options.side);
  DeviceTiles tiles = placed(std::move(split.dense), device);
  tiles.rest = cuda::device_rows(split.rest, device);
  return tiles;
}

}  // namespace

DeviceTiles translate_on_device(const Graph& graph, int height, Side side, Device device) {
  return translate_rows(lent_rows(graph, side, device), height, device);
}

std::shared_ptr<const DeviceTiles> device_tiles(const Graph& graph, const TileOptions& options,
                                                Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<DeviceTiles>(
        options.min_uses > 1 ? split_on_host(graph, options, device)
                             : translate_on_device(graph, options.height, options.side, device));
  };
  const std::string key =
      fmt::format("{} tiles of {} rows, {} uses, on {}", to_string(options.side), options.height,
                  options.min_uses, to_string(device));
  return std::static_pointer_cast<const DeviceTiles>(graph.derived(key, make));
}

}  // namespace tessera::tiles
