// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_quads.hpp"

#include <fmt/format.h>

#include "cuda/kept_with.hpp"
#include "tiles/cuda/translate_rows.hpp"

namespace tessera::tiles {

DeviceQuads arrange_on_device(const Graph& graph, const TileOptions& options, const Place& place) {
  return arrange_quads(translate_on_device(graph, options, place, WindowBits::row_sets), place);
}

std::shared_ptr<const DeviceQuads> device_quads(const Graph& graph, const TileOptions& given,
                                                const Place& place) {
  const TileOptions options = kept_tiles(graph, given);
  const std::string what = fmt::format("{} 2:4 tiles of {} rows, {} uses", to_string(options.side),
                                       options.height, options.min_uses);
  return cuda::kept_with<DeviceQuads>(graph, what, place,
                                      [&] { return arrange_on_device(graph, options, place); });
}

}  // namespace tessera::tiles
