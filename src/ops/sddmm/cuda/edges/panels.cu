// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/panels.hpp"

#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

/// Where panels begin, and at last where the edges end.
std::vector<EdgeOffset> panel_bounds(const Graph& graph) {
  std::vector<EdgeOffset> bounds;
  VertexId row = 0;
  for (EdgeOffset begin = 0; begin < graph.num_edges();) {
    while (graph.row_offsets()[row + 1] <= begin) ++row;
    bounds.push_back(begin);
    begin = tiles::panel_end(graph, begin, row);
  }
  bounds.push_back(graph.num_edges());
  return bounds;
}

/// Edges by panel, then by source, and where they stand by rows.
struct PanelKeys {
  cuda::EdgeKey* keys = nullptr;
  EdgeOffset* positions = nullptr;
  EdgeOffset count = 0;
  int source_bits = 0;
};

__global__ __launch_bounds__(block_threads) void fill_keys(const PanelKeys edges,
                                                           const VertexId* sources,
                                                           const EdgeOffset* bounds,
                                                           std::int64_t num_panels) {
  const std::int64_t edge = cuda::thread_number();
  if (edge >= edges.count) return;
  const EdgeOffset panel = cuda::lower_bound(bounds, 0, num_panels + 1, edge + 1) - 1;
  edges.keys[edge] = static_cast<cuda::EdgeKey>(panel) << edges.source_bits |
                     static_cast<cuda::EdgeKey>(sources[edge]);
  edges.positions[edge] = edge;
}

__global__ __launch_bounds__(block_threads) void fill_order(const PanelKeys edges,
                                                            OrderedEdge* order) {
  const std::int64_t k = cuda::thread_number();
  if (k >= edges.count) return;
  const cuda::EdgeKey source = edges.keys[k] & ((cuda::EdgeKey{1} << edges.source_bits) - 1);
  order[k] = {static_cast<VertexId>(source), static_cast<std::uint32_t>(edges.positions[k])};
}

DevicePanels made(const Graph& graph, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const auto rows = cuda::device_rows(graph, place);
  const std::vector<EdgeOffset> bounds = panel_bounds(graph);
  const std::int64_t num_panels = std::ssize(bounds) - 1;
  const Buffer<EdgeOffset> bounds_there =
      cuda::to_device(std::span<const EdgeOffset>(bounds), place);
  const cuda::KeyBits bits(static_cast<VertexId>(num_panels), graph.num_cols());
  Buffer<cuda::EdgeKey> keys(graph.num_edges(), place);
  Buffer<EdgeOffset> positions(graph.num_edges(), place);
  DevicePanels panels{Buffer<OrderedEdge>(graph.num_edges(), place)};
  if (graph.num_edges() == 0) return panels;

  const dim3 blocks(cuda::num_blocks(graph.num_edges(), block_threads));
  const auto edges = [&] {
    return PanelKeys{keys.data(), positions.data(), graph.num_edges(), bits.col};
  };
  cuda::launch(fill_keys, blocks, block_threads, place.stream, edges(), rows->indices.data(),
               bounds_there.data(), num_panels);
  cuda::sort_keys(keys, positions, bits.all, place);
  cuda::launch(fill_order, blocks, block_threads, place.stream, edges(), panels.order.data());
  return panels;
}

}  // namespace

std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, const Place& place) {
  return cuda::kept_with<DevicePanels>(graph, "panels of sddmm", place,
                                       [&] { return made(graph, place); });
}

}  // namespace tessera::ops
