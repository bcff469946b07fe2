// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/rows.hpp"
#include "cuda/self_loops.hpp"
#include "graph/access.hpp"
#include "graph/device_build.hpp"

/// Self loops and normalisation where a graph lies: the same arrays as on the CPU, bit for bit.
namespace tessera::detail {

using cuda_backend::CurrentDevice;

Graph with_self_loops_on_device(const Graph& graph, float weight) {
  const Place place = graph.place();
  const CurrentDevice current(place.device.index);
  const auto old = cuda::device_rows(graph, place);
  const SharedArray<float> old_values = cuda::array_in(GraphAccess::values(graph), place);
  const EdgeOffset most_edges = graph.num_edges() + graph.num_rows();
  Buffer<EdgeOffset> offsets(std::int64_t{graph.num_rows()} + 1, place);
  Buffer<VertexId> cols(most_edges, place);
  const bool has_values = graph.has_values() || weight != 1;
  Buffer<float> values(has_values ? most_edges : 0, place);
  cuda::LoopedRows rows;
  rows.old_offsets = old->offsets();
  rows.old_cols = old->indices.data();
  rows.old_values = old_values.data();
  rows.num_rows = graph.num_rows();
  rows.num_edges = graph.num_edges();
  rows.offsets = offsets.data();
  rows.cols = cols.data();
  rows.values = values.data();
  rows.loop_value = weight;
  cuda::count_with_loops(rows, offsets.data(), place.stream);
  cuda::exclusive_scan(offsets.data(), offsets.size(), place);
  cuda::write_with_loops(rows, place.stream);
  const SharedArray<EdgeOffset> old_ids = cuda::array_in(GraphAccess::edge_ids(graph), place);
  Buffer<EdgeOffset> ids(old_ids.size(), place);
  copy_bytes(ids.data(), old_ids.data(), checked_bytes(ids.size(), sizeof(EdgeOffset)),
             place.device, place.stream);
  cuda::move_edge_ids(rows, ids.data(), ids.size(), place.stream);

  const Graph looped =
      cuda::graph_on(place, graph.num_rows(), graph.num_cols(), offsets, std::move(cols));
  const EdgeOffset num_values = has_values ? looped.num_edges() : 0;
  const Graph complete =
      looped.with_values(cuda::placed(cuda::first_of(std::move(values), num_values), place))
          .with_edge_ids(cuda::placed(std::move(ids), place));
  return graph.has_repeated_edges() ? complete.with_repeated_edges() : complete;
}

Graph gcn_normalised_on_device(const Graph& graph, bool add_self_loops, float loop_weight) {
  const Place place = graph.place();
  const CurrentDevice current(place.device.index);
  const Graph looped = add_self_loops ? with_self_loops_on_device(graph, loop_weight) : graph;
  const auto rows = cuda::device_rows(looped, place);
  const SharedArray<float> values = cuda::array_in(GraphAccess::values(looped), place);
  Buffer<float> scale(looped.num_rows(), place);
  cuda::inverse_roots_of_degrees(rows->offsets(), values.data(), looped.num_rows(), scale.data(),
                                 place.stream);
  const PlacedArray<float> scales = cuda::placed(std::move(scale), place);
  return looped.with_scales(scales, scales);
}

}  // namespace tessera::detail
