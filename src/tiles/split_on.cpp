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

void check(int height, int min_uses, Device device) {
  require_available(device);
  check_height(height);
  check_min_uses(min_uses);
}

#ifdef TESSERA_WITH_CUDA
Graph brought(const cuda::DeviceRows& rows, Device device) {
  SharedArray<EdgeOffset> offsets;
  if (rows.wide_offsets.empty()) {
    const Buffer<std::int32_t> narrow = cuda::to_host(rows.narrow_offsets, device);
    offsets = std::vector<EdgeOffset>(narrow.begin(), narrow.end());
  } else {
    offsets = cuda::to_host(rows.wide_offsets, device);
  }
  return Graph(rows.num_rows, rows.num_cols, std::move(offsets),
               cuda::to_host(rows.indices, device));
}

Graph without_edges(VertexId num_rows, VertexId num_cols) {
  return Graph(num_rows, num_cols,
               std::vector<EdgeOffset>(static_cast<std::size_t>(num_rows) + 1, 0),
               std::vector<VertexId>());
}
#endif

}  // namespace

SplitGraph translate_dense(const Graph& graph, int height, int min_uses, Side side, Device device) {
  check(height, min_uses, device);
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    const DeviceTiles made = translate_on_device(graph, {height, side, min_uses}, device);
    SplitGraph split;
    split.dense = made.host;
    split.dense.columns = cuda::to_host(made.columns, device);
    split.dense.words = cuda::to_host(made.words, device);
    split.rest = made.rest != nullptr ? brought(*made.rest, device)
                                      : without_edges(made.host.num_rows, made.host.num_cols);
    return split;
  }
#endif
  return translate_dense(graph, height, min_uses, side);
}

std::function<void()> prepared_split(const Graph& graph, int height, int min_uses, Side side,
                                     Device device) {
  check(height, min_uses, device);
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    const auto rows = side == Side::forward ? cuda::device_rows(graph, device)
                                            : cuda::device_columns(graph, device);
    return [rows, height, min_uses, device] { translate_rows(*rows, height, device, min_uses); };
  }
#endif
  return [graph, height, min_uses, side] { translate_dense(graph, height, min_uses, side); };
}

}  // namespace tessera::tiles
