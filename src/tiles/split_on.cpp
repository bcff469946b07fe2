// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "tessera/tiles/tiled_graph.hpp"

#include "tiles/prepared_split.hpp"
#include "tiles/window_columns.hpp"

#ifdef TESSERA_WITH_CUDA
#include "cuda/array.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/cuda/translate_rows.hpp"
#endif

namespace tessera::tiles {
namespace {

void check(int height, int min_uses, const Place& place) {
  require_available(place.device);
  check_height(height);
  check_min_uses(min_uses);
}

#ifdef TESSERA_WITH_CUDA
Graph brought(const cuda::DeviceRows& rows, const Place& place) {
  SharedArray<EdgeOffset> offsets;
  if (rows.wide_offsets.empty()) {
    const Buffer<std::int32_t> narrow = cuda::to_host(rows.narrow_offsets, place);
    offsets = std::vector<EdgeOffset>(narrow.begin(), narrow.end());
  } else {
    offsets = cuda::to_host(rows.wide_offsets, place);
  }
  return Graph(rows.num_rows, rows.num_cols, std::move(offsets),
               cuda::to_host(rows.indices, place));
}

Graph without_edges(VertexId num_rows, VertexId num_cols) {
  return Graph(num_rows, num_cols,
               std::vector<EdgeOffset>(static_cast<std::size_t>(num_rows) + 1, 0),
               std::vector<VertexId>());
}
#endif

}  // namespace

SplitGraph translate_dense(const Graph& graph, int height, int min_uses, Side side,
                           const Place& place) {
  check(height, min_uses, place);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const DeviceTiles made = translate_on_device(graph, {height, side, min_uses}, place);
    SplitGraph split;
    split.dense = made.host;
    split.dense.columns = cuda::to_host(made.columns, place);
    split.dense.words = cuda::to_host(made.words, place);
    split.rest = made.rest != nullptr ? brought(*made.rest, place)
                                      : without_edges(made.host.num_rows, made.host.num_cols);
    return split;
  }
#endif
  return translate_dense(graph, height, min_uses, side);
}

std::function<void()> prepared_split(const Graph& graph, int height, int min_uses, Side side,
                                     const Place& place) {
  check(height, min_uses, place);
#ifdef TESSERA_WITH_CUDA
  if (place.device.kind == DeviceKind::cuda) {
    const auto rows = side_rows(graph, side, place);
    return [rows, height, min_uses, place] {
      translate_rows(*rows, height, place, min_uses);
      synchronise(place.device, place.stream);
    };
  }
#endif
  return [graph, height, min_uses, side] { translate_dense(graph, height, min_uses, side); };
}

}  // namespace tessera::tiles
