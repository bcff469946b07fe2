// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/panels/order.hpp"

#include <string>
#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/edge_rows.cuh"
#include "cuda/kept_with.hpp"
#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "ops/sddmm/cuda/panels/cut.hpp"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

/// Edges by panel, then by source, and where they stand by rows.
struct PanelKeys {
  cuda::EdgeKey* keys = nullptr;
  EdgeOffset* positions = nullptr;
  EdgeOffset count = 0;
  int source_bits = 0;
  cuda::EdgeRows edge_rows;
  int rows = 0;  ///< of a panel
};

__global__ __launch_bounds__(block_threads) void fill_keys(const PanelKeys edges,
                                                           const VertexId* sources) {
  const std::int64_t edge = cuda::thread_number();
  if (edge >= edges.count) return;
  const VertexId panel = cuda::row_of_edge(edges.edge_rows, edge) / edges.rows;
  edges.keys[edge] = static_cast<cuda::EdgeKey>(panel) << edges.source_bits |
                     static_cast<cuda::EdgeKey>(sources[edge]);
  edges.positions[edge] = edge;
}

__global__ __launch_bounds__(block_threads) void fill_order(const PanelKeys edges,
                                                            const cuda::Offsets offsets,
                                                            PanelEdge* order) {
  const std::int64_t k = cuda::thread_number();
  if (k >= edges.count) return;
  const cuda::EdgeKey source = edges.keys[k] & ((cuda::EdgeKey{1} << edges.source_bits) - 1);
  const EdgeOffset position = edges.positions[k];
  const VertexId row = cuda::row_of_edge(edges.edge_rows, position);
  const VertexId first_row = row / edges.rows * edges.rows;
  const EdgeOffset place = position - cuda::offset_at(offsets, first_row);
  order[k] = {static_cast<VertexId>(source), static_cast<std::uint32_t>(row - first_row)
                                                     << panel_place_bits |
                                                 static_cast<std::uint32_t>(place)};
}

DevicePanels made(const Graph& graph, int rows, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  DevicePanels panels{Buffer<PanelEdge>(graph.num_edges(), place), {}};
  if (graph.num_edges() == 0) return panels;
  const auto of_rows = cuda::device_rows(graph, place);
  const auto edge_rows = cuda::device_edge_rows(graph, place);
  const cuda::KeyBits bits((graph.num_rows() + rows - 1) / rows, graph.num_cols());
  Buffer<cuda::EdgeKey> keys(graph.num_edges(), place);
  Buffer<EdgeOffset> positions(graph.num_edges(), place);
  const dim3 blocks(cuda::num_blocks(graph.num_edges(), block_threads));
  const auto edges = [&] {
    return PanelKeys{keys.data(), positions.data(),  graph.num_edges(),
                     bits.col,    edge_rows->view(), rows};
  };
  cuda::launch(fill_keys, blocks, block_threads, place.stream, edges(), of_rows->indices.data());
  cuda::sort_keys(keys, positions, bits.all, place);
  cuda::launch(fill_order, blocks, block_threads, place.stream, edges(), of_rows->offsets(),
               panels.order.data());
  // Kernels on panels read the order ahead of the kernels before them: a copy, which overlaps
  // nothing, comes between them and the one that wrote it.
  const std::vector<PanelPiece> pieces =
      cut_panels(graph, rows, wanted_pieces(graph, rows, device_traits(place.device)));
  panels.pieces = cuda::to_device(std::span<const PanelPiece>(pieces), place);
  return panels;
}

}  // namespace

std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, int rows,
                                                  const Place& place) {
  return cuda::kept_with<DevicePanels>(graph, "panels of " + std::to_string(rows) + " rows", place,
                                       [&] { return made(graph, rows, place); });
}

}  // namespace tessera::ops
