// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/prepared_translation.hpp"
#include "tiles/quad_window.hpp"

#ifdef TESSERA_WITH_CUDA
#include "cuda/array.hpp"
#include "tiles/cuda/arrange_quads.hpp"
#include "tiles/cuda/translate_rows.hpp"
#endif

namespace tessera::tiles {

QuadTiles translate_quads(const Graph& graph, int height, Side side, const Place& place) {
  require_available(place.device);
  check_quad_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const DeviceQuads made = arrange_on_device(graph, {height, side}, place);
    QuadTiles quads = made.host;
    quads.columns = cuda::to_host(made.columns, place);
    quads.words = cuda::to_host(made.words, place);
    return quads;
  }
#endif
  return translate_quads(graph, height, side);
}

std::function<void()> prepared_quads(const Graph& graph, int height, Side side,
                                     const Place& place) {
  require_available(place.device);
  check_quad_height(height);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto rows = side_rows(graph, side, place);
    return [rows, height, place] {
      arrange_quads(translate_rows(*rows, height, place, 1, nullptr, WindowBits::row_sets), place);
      synchronise(place.device, place.stream);
    };
  }
#endif
  return [graph, height, side] { translate_quads(graph, height, side); };
}

}  // namespace tessera::tiles
