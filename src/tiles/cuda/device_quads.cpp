// SPDX-License-Identifier: Apache-2.0
#include "tiles/cuda/device_quads.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"

namespace tessera::tiles {

namespace {

std::shared_ptr<const cuda::DeviceRows> rows_in(const Graph& graph, const Place& place) {
  auto rows = std::make_shared<cuda::DeviceRows>();
  rows->num_rows = graph.num_rows();
  rows->num_cols = graph.num_cols();
  rows->num_edges = graph.num_edges();
  cuda::set_offsets(*rows, graph.row_offsets(), place);
  rows->indices = cuda::to_device(graph.col_indices().span(), place);
  return rows;
}

}  // namespace

std::shared_ptr<const DeviceQuads> device_quads(const Graph& graph, const TileOptions& options,
                                                const Place& place) {
  const auto make = [&] {
    DeviceQuads quads;
    if (options.min_uses > 1) {
      const SplitGraph split =
          translate_dense(graph, options.height, options.min_uses, options.side);
      quads.host = translate_quads(to_graph(split.dense), options.height);
      quads.rest = rows_in(split.rest, place);
    } else {
      quads.host = translate_quads(graph, options.height, options.side);
    }
    Buffer<EdgeOffset> half_steps(quads.host.step_offsets.size());
    std::transform(quads.host.step_offsets.begin(), quads.host.step_offsets.end(),
                   half_steps.begin(), [](EdgeOffset step) { return 2 * step; });
    quads.half_step_offsets = std::move(half_steps);
    quads.columns = cuda::to_device(quads.host.columns.span(), place);
    quads.words = cuda::to_device(quads.host.words.span(), place);
    quads.host.columns = {};
    quads.host.words = {};
    return quads;
  };
  return cuda::kept_with<DeviceQuads>(
      graph,
      fmt::format("{} 2:4 tiles of {} rows, {} uses", to_string(options.side), options.height,
                  options.min_uses),
      place, make);
}

}  // namespace tessera::tiles
