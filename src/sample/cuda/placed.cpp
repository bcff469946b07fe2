// SPDX-License-Identifier: Apache-2.0
#include "sample/placed.hpp"

#include <bit>
#include <limits>
#include <memory>
#include <utility>

#include "core/cuda_handles.hpp"
#include "core/transfer_memory.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/rows.hpp"
#include "cuda/select_rows.hpp"
#include "graph/access.hpp"
#include "sample/cuda/edges.hpp"

namespace tessera::sample::on_gpu {
namespace {

using cuda::EdgeKey;

/// An array of the size of the edges where a GPU reads it.
template <class T>
SharedArray<T> edge_array(std::span<const T> values, EdgeMemory memory, const Place& place) {
  if (memory == EdgeMemory::device) return cuda::to_device(values, place);
  Buffer<T> pinned(static_cast<std::int64_t>(values.size()), transfer_memory(place.device));
  std::copy(values.begin(), values.end(), pinned.data());
  return pinned;
}

template <class T>
SharedArray<T> edge_array(const PlacedArray<T>& values, EdgeMemory memory, const Place& place) {
  if (memory == EdgeMemory::device) return cuda::array_in(values, place);
  return edge_array(values.here().span(), memory, place);
}

/// The first `size` elements of an array.
template <class T>
SharedArray<T> prefix(const SharedArray<T>& array, std::int64_t size) {
  return {std::make_shared<SharedArray<T>>(array), array.data(), size};
}

/// Rows of a graph: the edges of each target by their sources, equal ones by their positions.
struct Rows {
  SharedArray<VertexId> sources;
  SharedArray<EdgeOffset> positions;
};

Rows sorted_rows(const PlacedHops& hops, const Candidates& candidates, bool repeats,
                 const Place& place) {
  const EdgeOffset count = hops.num_edges();
  const DrawnEdges drawn{hops.targets.data(), hops.sources.data(), hops.candidates.data(),
                         candidates.positions.empty() ? nullptr : candidates.positions.data(),
                         count};
  Buffer<EdgeKey> keys(count, place);
  Buffer<EdgeOffset> positions(count, place);
  Buffer<EdgeOffset> ids(repeats ? count : 0, place);
  if (repeats) {
    number_positions(drawn, keys.data(), ids.data(), place.stream);
    cuda::sort_keys(keys, ids, 63, place);
  }
  const auto vertices = static_cast<std::uint64_t>(hops.num_vertices());
  const int source_bits = static_cast<int>(std::bit_width(vertices));
  key_by_ends(drawn, repeats ? ids.data() : nullptr, source_bits, keys.data(), positions.data(),
              place.stream);
  cuda::sort_keys(keys, positions, 2 * source_bits, place);
  Buffer<VertexId> sources(count, place);
  take_sources(keys.data(), count, source_bits, sources.data(), place.stream);
  return {std::move(sources), std::move(positions)};
}

SharedArray<std::int32_t> narrow(const Buffer<EdgeOffset>& offsets, std::int64_t count,
                                 const Place& place) {
  Buffer<std::int32_t> fitting(count, place);
  cuda::narrow_offsets(offsets.data(), count, fitting.data(), place.stream);
  return fitting;
}

}  // namespace

PlacedGraph placed_graph(const Graph& graph, const EdgeKnowledge& knowledge, EdgeMemory memory,
                         const Place& place) {
  require_available(place.device);
  const cuda_backend::CurrentDevice current(place.device.index);
  PlacedGraph placed;
  Candidates& there = placed.candidates;
  if (knowledge.is_any()) {
    const Candidates here = candidates_of(graph.row_offsets(), graph.col_indices(), knowledge);
    there.offsets = cuda::to_device(here.offsets.span(), place);
    there.sources = edge_array(here.sources.span(), memory, place);
    there.positions = edge_array(here.positions.span(), memory, place);
    there.times = edge_array(here.times.span(), memory, place);
    there.weights = edge_array(here.weights.span(), memory, place);
    there.running_weights = edge_array(here.running_weights.span(), memory, place);
  } else {
    there.offsets = cuda::to_device(graph.row_offsets().span(), place);
    there.sources = edge_array(detail::GraphAccess::col_indices(graph), memory, place);
  }
  if (graph.has_values()) {
    placed.values = edge_array(detail::GraphAccess::values(graph), memory, place);
  }
  return placed;
}

NeighbourSample sample_of(PlacedHops&& hops, const PlacedGraph& graph, std::size_t num_layers,
                          bool repeats, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const EdgeOffset edges = hops.num_edges();
  const Rows rows = sorted_rows(hops, graph.candidates, repeats, place);
  Buffer<float> values(graph.values.empty() ? 0 : edges, place);
  cuda::gather(graph.values.data(), rows.positions.data(), values.size(), values.data(),
               place.stream);
  const SharedArray<float> drawn_values(std::move(values));
  const SharedArray<EdgeOffset> host_offsets(std::move(hops.host_offsets));
  const bool fits = edges <= std::numeric_limits<std::int32_t>::max();
  const SharedArray<std::int32_t> narrow_offsets =
      fits ? narrow(hops.offsets, host_offsets.size(), place) : SharedArray<std::int32_t>();
  const SharedArray<EdgeOffset> wide_offsets(std::move(hops.offsets));

  const std::int64_t num_vertices = hops.num_vertices();
  const std::int64_t num_trees = hops.trees.empty() ? 0 : num_vertices;
  NeighbourSample sample;
  sample.vertices = cuda::placed(cuda::first_of(std::move(hops.vertices), num_vertices), place);
  sample.trees = cuda::placed(cuda::first_of(std::move(hops.trees), num_trees), place);
  sample.vertices_until = std::move(hops.vertices_until);
  sample.edges_until = std::move(hops.edges_until);
  sample.edges = cuda::placed(rows.positions, place);
  for (std::size_t hop = num_layers; hop > 0; --hop) {
    cuda::DeviceRows layer;
    const std::int64_t num_rows = sample.vertices_until[hop - 1];
    layer.num_rows = static_cast<VertexId>(num_rows);
    layer.num_cols = static_cast<VertexId>(sample.vertices_until[hop]);
    layer.num_edges = sample.edges_until[hop];
    layer.host_offsets = prefix(host_offsets, num_rows + 1);
    if (fits) {
      layer.narrow_offsets = prefix(narrow_offsets, num_rows + 1);
    } else {
      layer.wide_offsets = prefix(wide_offsets, num_rows + 1);
    }
    layer.indices = prefix(rows.sources, layer.num_edges);
    const std::int64_t num_values = drawn_values.empty() ? 0 : layer.num_edges;
    Graph drawn = cuda::graph_on(place, std::move(layer))
                      .with_values(cuda::placed(prefix(drawn_values, num_values), place));
    sample.layers.push_back(repeats ? drawn.with_repeated_edges() : std::move(drawn));
  }
  return sample;
}

}  // namespace tessera::sample::on_gpu
