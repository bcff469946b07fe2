// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/tile_values.hpp"

#include "tiles/prepared_translation.hpp"
#include "tiles/value_bits.hpp"
#include "tiles/window_columns.hpp"

#ifdef TESSERA_WITH_CUDA
#include "cuda/array.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/cuda/translate_rows.hpp"
#include "tiles/cuda/value_layout.hpp"
#endif

namespace tessera::tiles {

TiledGraph translate(const Graph& graph, int height, Side side, const Place& place) {
  require_available(place.device);
  check_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const DeviceTiles made = translate_on_device(graph, height, side, place);
    TiledGraph tiled = made.host;
    tiled.columns = cuda::to_host(made.columns, place);
    tiled.words = cuda::to_host(made.words, place);
    return tiled;
  }
#endif
  return translate(graph, height, side);
}

ValueLayout place_values(const Graph& graph, const TiledGraph& tiled, Side side,
                         const Place& place) {
  require_available(place.device);
  check_value_height(tiled.height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto made = device_value_layout(graph, tiled.height, side, place);
    ValueLayout layout;
    layout.unit_offsets = made->unit_offsets;
    layout.starts = cuda::to_host(made->starts, place);
    layout.edges = cuda::to_host(made->edges, place);
    return layout;
  }
#endif
  return place_values(graph, tiled, side);
}

std::function<void()> prepared_translation(const Graph& graph, int height, Side side,
                                           const Place& place) {
  require_available(place.device);
  check_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto rows = side_rows(graph, side, place);
    return [rows, height, place] {
      translate_rows(*rows, height, place);
      synchronise(place.device, place.stream);
    };
  }
#endif
  return [graph, height, side] { translate(graph, height, side); };
}

}  // namespace tessera::tiles
