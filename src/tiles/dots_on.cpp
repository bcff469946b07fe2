// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tiles/dot_steps.hpp"
#include "tiles/dot_tiles.hpp"

#ifdef TESSERA_WITH_CUDA
#include "cuda/array.hpp"
#include "tiles/cuda/dot_steps.hpp"
#include "tiles/cuda/dot_tiles.hpp"
#endif

namespace tessera::tiles {

DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side,
                        const Place& place) {
  require_available(place.device);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto there = device_dot_tiles(graph, side, place);
    DotTiles made;
    made.tiles = cuda::to_host(there->tiles, place);
    if (made.tiles.empty()) return made;
    // There is room for more than there are.
    const DotTile& last = made.tiles.back();
    const std::int64_t blocks = std::int64_t{last.first_blocks[dot_tile_strips - 1]} +
                                code_blocks(last.counts[dot_tile_strips - 1]);
    const Buffer<std::uint32_t> codes = cuda::to_host(there->codes, place);
    made.codes =
        std::vector<std::uint32_t>(codes.begin(), codes.begin() + blocks * code_block_words);
    return made;
  }
#endif
  return make_dot_tiles(graph, tiled, side);
}

DotSteps make_dot_steps(const Graph& graph, const TiledGraph& tiled, int run_steps, Side side,
                        const Place& place) {
  require_available(place.device);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto there = device_dot_steps(graph, run_steps, side, place);
    DotSteps made;
    made.masks = cuda::to_host(there->masks, place);
    made.runs = cuda::to_host(there->runs, place);
    made.places = cuda::to_host(there->places, place);
    return made;
  }
#endif
  return make_dot_steps(graph, tiled, run_steps, side);
}

}  // namespace tessera::tiles
