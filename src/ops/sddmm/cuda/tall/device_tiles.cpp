// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/tall/device_tiles.hpp"

#include <span>
#include <string>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "ops/sddmm/cuda/tall/launch.hpp"
#include "ops/sddmm/tile_lists.hpp"

namespace tessera::ops {

std::shared_ptr<const DeviceDotTiles> device_dot_tiles(const Graph& graph, const Place& place) {
  return cuda::kept_with<DeviceDotTiles>(graph, "tiles with lists of edges", place, [&] {
    const TileLists<dot_tile_height> lists = make_tile_lists<dot_tile_height>(graph);
    DeviceDotTiles result;
    result.num_tiles = static_cast<int>(lists.tiles.size());
    result.tiles = cuda::to_device(std::as_bytes(lists.tiles.span()), place);
    result.codes = cuda::to_device(std::span<const std::uint32_t>(lists.codes.span()), place);
    return result;
  });
}

}  // namespace tessera::ops
