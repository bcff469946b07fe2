// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/device_tiles.hpp"

#include <span>
#include <string>

#include "cuda/array.hpp"
#include "ops/sddmm/cuda/tall/launch.hpp"
#include "ops/sddmm/tile_lists.hpp"

namespace tessera::ops {

std::shared_ptr<const DeviceDotTiles> device_dot_tiles(const Graph& graph, Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    const TileLists<dot_tile_height> lists = make_tile_lists<dot_tile_height>(graph);
    auto result = std::make_shared<DeviceDotTiles>();
    result->num_tiles = static_cast<int>(lists.tiles.size());
    result->tiles = cuda::to_device(std::as_bytes(lists.tiles.span()), device);
    result->codes = cuda::to_device(std::span<const std::uint32_t>(lists.codes.span()), device);
    return result;
  };
  return std::static_pointer_cast<const DeviceDotTiles>(
      graph.derived("tiles with lists of edges on " + to_string(device), make));
}

}  // namespace tessera::ops
