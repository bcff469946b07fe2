// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tessera/tiles/tiled_graph.hpp"

#include "tiles/prepared_translation.hpp"
#include "tiles/window_columns.hpp"

#ifdef TESSERA_WITH_CUDA
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/cuda/translate_rows.hpp"
#endif

namespace tessera::tiles {

TiledGraph translate(const Graph& graph, int height, Side side, Device device) {
  require_available(device);
  check_height(height);
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    const DeviceTiles made = translate_on_device(graph, height, side, device);
    const auto brought = [&]<class T>(const Buffer<T>& from) {
      Buffer<T> copy(from.size());
      copy_bytes(copy.data(), from.data(), static_cast<std::size_t>(from.size()) * sizeof(T),
                 device);
      synchronise(device);
      return copy;
    };
    TiledGraph tiled = made.host;
    tiled.columns = brought(made.columns);
    tiled.words = brought(made.words);
    return tiled;
  }
#endif
  return translate(graph, height, side);
}

std::function<void()> prepared_translation(const Graph& graph, int height, Side side,
                                           Device device) {
  require_available(device);
  check_height(height);
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    const auto rows = side == Side::forward ? cuda::device_rows(graph, device)
                                            : cuda::device_columns(graph, device);
    return [rows, height, device] { translate_rows(*rows, height, device); };
  }
#endif
  return [graph, height, side] { translate(graph, height, side); };
}

}  // namespace tessera::tiles
