// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/lists/list.hpp"

#include <algorithm>

#include "core/cuda_handles.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/edge_rows.cuh"
#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

/// How many edges have a vertex as their source, and which it is: the larger, the more popular; of
/// equal ones the first.
using Popularity = unsigned long long;

struct Hubs {
  cuda::EdgeRows edge_rows;
  cuda::Offsets offsets;
  const VertexId* sources = nullptr;
  EdgeOffset num_edges = 0;
  VertexId num_rows = 0;
  bool square = false;  ///< rows are sources, too
  unsigned* uses = nullptr;
  Popularity* of_rows = nullptr;

  __device__ Popularity popularity(VertexId source) const {
    return Popularity{uses[source]} << 32 | ~static_cast<unsigned>(source);
  }
  /// 0 of a row that has none.
  __device__ std::uint64_t hub_of(VertexId row) const {
    return of_rows[row] == 0 ? 0 : static_cast<std::uint64_t>(~static_cast<unsigned>(of_rows[row]));
  }
};

__global__ __launch_bounds__(block_threads) void count_uses(const Hubs hubs) {
  const std::int64_t edge = cuda::thread_number();
  if (edge < hubs.num_edges) atomicAdd(hubs.uses + hubs.sources[edge], 1u);
}

__global__ __launch_bounds__(block_threads) void begin_with_rows(const Hubs hubs) {
  const std::int64_t row = cuda::thread_number();
  if (row >= hubs.num_rows) return;
  hubs.of_rows[row] = hubs.square ? hubs.popularity(static_cast<VertexId>(row)) : 0;
}

__global__ __launch_bounds__(block_threads) void find_hubs(const Hubs hubs) {
  const std::int64_t edge = cuda::thread_number();
  if (edge >= hubs.num_edges) return;
  atomicMax(hubs.of_rows + cuda::row_of_edge(hubs.edge_rows, edge),
            hubs.popularity(hubs.sources[edge]));
}

/// The hub of a row's hub, the row's hub, and how few edges it has.
__global__ __launch_bounds__(block_threads) void fill_row_keys(const Hubs hubs, cuda::EdgeKey* keys,
                                                               EdgeOffset* rows) {
  const std::int64_t row = cuda::thread_number();
  if (row >= hubs.num_rows) return;
  constexpr int degree_bits = 64 - 2 * hub_bits;
  constexpr EdgeOffset most = (EdgeOffset{1} << degree_bits) - 1;
  const EdgeOffset degree =
      cuda::offset_at(hubs.offsets, row + 1) - cuda::offset_at(hubs.offsets, row);
  const std::uint64_t hub = hubs.hub_of(static_cast<VertexId>(row));
  const std::uint64_t above = hubs.square ? hubs.hub_of(static_cast<VertexId>(hub)) : 0;
  keys[row] = (above << hub_bits | hub) << degree_bits |
              static_cast<std::uint64_t>(most - min(degree, most));
  rows[row] = row;
}

__global__ __launch_bounds__(block_threads) void fill_places(const EdgeOffset* rows, VertexId count,
                                                             VertexId* places) {
  const std::int64_t k = cuda::thread_number();
  if (k < count) places[rows[k]] = static_cast<VertexId>(k);
}

}  // namespace

Buffer<VertexId> places_by_hubs(const Graph& graph, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const VertexId num_rows = graph.num_rows();
  Buffer<VertexId> places(num_rows, place);
  Buffer<unsigned> uses(graph.num_cols(), place);
  Buffer<Popularity> of_rows(num_rows, place);
  Buffer<cuda::EdgeKey> keys(num_rows, place);
  Buffer<EdgeOffset> rows(num_rows, place);
  fill_zero(uses.data(), uses.size() * sizeof(unsigned), place.device, place.stream);
  const auto of_graph = cuda::device_rows(graph, place);
  const auto edge_rows = cuda::device_edge_rows(graph, place);
  const Hubs hubs = {edge_rows->view(),
                     of_graph->offsets(),
                     of_graph->indices.data(),
                     graph.num_edges(),
                     num_rows,
                     graph.is_square(),
                     uses.data(),
                     of_rows.data()};
  const dim3 by_edges(cuda::num_blocks(graph.num_edges(), block_threads));
  const dim3 by_rows(cuda::num_blocks(num_rows, block_threads));
  cuda::launch(count_uses, by_edges, block_threads, place.stream, hubs);
  cuda::launch(begin_with_rows, by_rows, block_threads, place.stream, hubs);
  cuda::launch(find_hubs, by_edges, block_threads, place.stream, hubs);
  cuda::launch(fill_row_keys, by_rows, block_threads, place.stream, hubs, keys.data(), rows.data());
  cuda::sort_keys(keys, rows, 64, place);
  cuda::launch(fill_places, by_rows, block_threads, place.stream, rows.data(), num_rows,
               places.data());
  return places;
}

}  // namespace tessera::ops
