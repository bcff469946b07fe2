// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/list.hpp"

#include <string>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/edge_rows.cuh"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

struct EdgesByRows {
  cuda::EdgeRows edge_rows;
  const VertexId* sources = nullptr;
  EdgeOffset count = 0;

  __device__ VertexId target(EdgeOffset edge) const { return cuda::row_of_edge(edge_rows, edge); }
};

/// Which of the rows in another order an edge's target is; edges of a row stay as they lie.
__global__ __launch_bounds__(block_threads) void fill_row_keys(const EdgesByRows edges,
                                                               const VertexId* row_places,
                                                               cuda::EdgeKey* keys,
                                                               EdgeOffset* positions) {
  const std::int64_t edge = cuda::thread_number();
  if (edge >= edges.count) return;
  keys[edge] = static_cast<cuda::EdgeKey>(row_places[edges.target(edge)]);
  positions[edge] = edge;
}

/// The panel of an edge and its source.
__global__ __launch_bounds__(block_threads) void fill_panel_keys(const EdgesByRows edges,
                                                                 int source_bits,
                                                                 cuda::EdgeKey* keys,
                                                                 EdgeOffset* positions) {
  const std::int64_t edge = cuda::thread_number();
  if (edge >= edges.count) return;
  keys[edge] = static_cast<cuda::EdgeKey>(edges.target(edge) / panel_rows) << source_bits |
               static_cast<cuda::EdgeKey>(edges.sources[edge]);
  positions[edge] = edge;
}

struct WrittenList {
  VertexId* targets = nullptr;
  VertexId* sources = nullptr;
  std::int32_t* places = nullptr;  ///< null where positions are
  std::int64_t count = 0;          ///< with what fills the last tile
};

/// `positions` are where edges lie by rows; null: listed as they lie.
__global__ __launch_bounds__(block_threads) void fill_list(const EdgesByRows edges,
                                                           const EdgeOffset* positions,
                                                           const WrittenList list) {
  const std::int64_t k = cuda::thread_number();
  if (k >= list.count) return;
  const EdgeOffset listed = min(k, edges.count - 1);
  const EdgeOffset edge = positions == nullptr ? listed : positions[listed];
  list.targets[k] = edges.target(edge);
  list.sources[k] = edges.sources[edge];
  if (list.places != nullptr && k < edges.count) list.places[k] = static_cast<std::int32_t>(edge);
}

/// Where edges of the list lie by rows; none where it is their order.
Buffer<EdgeOffset> sorted_positions(const Graph& graph, ListOrder order, const EdgesByRows& edges,
                                    const Place& place) {
  if (order == ListOrder::rows) return {};
  Buffer<cuda::EdgeKey> keys(edges.count, place);
  Buffer<EdgeOffset> positions(edges.count, place);
  const dim3 blocks(cuda::num_blocks(edges.count, block_threads));
  if (order == ListOrder::panels) {
    const cuda::KeyBits bits((graph.num_rows() + panel_rows - 1) / panel_rows, graph.num_cols());
    cuda::launch(fill_panel_keys, blocks, block_threads, place.stream, edges, bits.col, keys.data(),
                 positions.data());
    cuda::sort_keys(keys, positions, bits.all, place);
    return positions;
  }
  const Buffer<VertexId> row_places = places_by_hubs(graph, place);
  cuda::launch(fill_row_keys, blocks, block_threads, place.stream, edges, row_places.data(),
               keys.data(), positions.data());
  cuda::sort_keys(keys, positions, hub_bits, place);
  return positions;
}

DeviceList made(const Graph& graph, ListOrder order, const Place& place) {
  if (graph.num_edges() == 0) return {};
  const cuda_backend::CurrentDevice current(place.device.index);
  const auto of_rows = cuda::device_rows(graph, place);
  const auto edge_rows = cuda::device_edge_rows(graph, place);
  const EdgesByRows edges = {edge_rows->view(), of_rows->indices.data(), graph.num_edges()};
  const std::int64_t padded = (edges.count + list_tile - 1) / list_tile * list_tile;
  DeviceList list{Buffer<VertexId>(padded, place), Buffer<VertexId>(padded, place),
                  Buffer<std::int32_t>(order == ListOrder::rows ? 0 : edges.count, place),
                  Buffer<VertexId>(1, place)};
  const Buffer<EdgeOffset> positions = sorted_positions(graph, order, edges, place);
  const bool keeps_sources = order == ListOrder::panels;
  const WrittenList written = {keeps_sources ? list.gathered.data() : list.kept.data(),
                               keeps_sources ? list.kept.data() : list.gathered.data(),
                               list.places.empty() ? nullptr : list.places.data(), padded};
  cuda::launch(fill_list, dim3(cuda::num_blocks(padded, block_threads)), block_threads,
               place.stream, edges, positions.empty() ? nullptr : positions.data(), written);
  // Kernels on lists read them ahead of the kernels before them: this overlaps nothing and comes
  // between them and the one that wrote the list.
  fill_zero(list.apart.data(), sizeof(VertexId), place.device, place.stream);
  return list;
}

}  // namespace

std::shared_ptr<const DeviceList> device_list(const Graph& graph, ListOrder order,
                                              const Place& place) {
  const std::string name = list_policies[static_cast<std::size_t>(order)].name;
  return cuda::kept_with<DeviceList>(graph, "edges of " + name, place,
                                     [&] { return made(graph, order, place); });
}

}  // namespace tessera::ops
