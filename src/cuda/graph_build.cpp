// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/rows.hpp"
#include "cuda/self_loops.hpp"
#include "graph/device_build.hpp"

/// Graphs built on a GPU: the same arrays as on the CPU, bit for bit.
namespace tessera::detail {
namespace {

using cuda::EdgeKey;
using cuda_backend::CurrentDevice;

template <class T>
Buffer<T> array_on(Device device, std::int64_t size) {
  return Buffer<T>(size, default_memory(device));
}

/// The caller's array, copied if it is not on the GPU already.
template <class T>
class OnDevice {
 public:
  OnDevice(std::span<const T> values, Device device) : data_(values.data()) {
    if (cuda_backend::is_on_gpu(data_)) return;
    copy_ = cuda::to_device(values, device);
    data_ = copy_.data();
  }
  const T* data() const noexcept { return data_; }

 private:
  const T* data_;
  Buffer<T> copy_;
};

/// Sorted edges on their way to a graph.
struct Edges {
  Buffer<EdgeKey> keys;
  Buffer<EdgeOffset> positions;  ///< in the input; empty where nobody needs them
  Buffer<float> values;
  Buffer<EdgeOffset> edge_ids;
};

[[noreturn]] void report_bad_edge(const EdgeInput& in, EdgeOffset position, Device device) {
  VertexId row = 0, col = 0;
  copy_bytes(&row, in.rows.data() + position, sizeof(row), device);
  copy_bytes(&col, in.cols.data() + position, sizeof(col), device);
  synchronise(device);
  report_out_of_range(in, position, row, col);
}

[[noreturn]] void report_repeated_key(const EdgeInput& in, const EdgeKey* key, Device device) {
  EdgeKey found = 0;
  copy_bytes(&found, key, sizeof(found), device);
  synchronise(device);
  const cuda::KeyBits bits(in.num_rows, in.num_cols);
  report_duplicate(in, static_cast<VertexId>(found >> bits.col),
                   static_cast<VertexId>(found & ((EdgeKey{1} << bits.col) - 1)));
}

Edges sorted_edges(const EdgeInput& in, bool with_positions, Device device) {
  const OnDevice<VertexId> rows(in.rows, device), cols(in.cols, device);
  Edges edges;
  edges.keys = array_on<EdgeKey>(device, in.count());
  edges.positions = array_on<EdgeOffset>(device, with_positions ? in.count() : 0);
  const EdgeOffset bad = cuda::pack_edges(
      rows.data(), cols.data(), in.count(), in.num_rows, in.num_cols, edges.keys.data(),
      with_positions ? edges.positions.data() : nullptr, device);
  if (bad != cuda::no_edge) report_bad_edge(in, bad, device);
  cuda::sort_keys(edges.keys, edges.positions, cuda::KeyBits(in.num_rows, in.num_cols).all, device);
  return edges;
}

/// All edges differ: they keep their values and get their places as ids.
void place(const EdgeInput& in, const BuildOptions& options, Edges& edges) {
  if (edges.positions.empty()) return;
  const Device device = options.device;
  const OnDevice<float> values(in.values, device);
  edges.values = array_on<float>(device, static_cast<EdgeOffset>(in.values.size()));
  edges.edge_ids = array_on<EdgeOffset>(device, options.keep_edge_ids ? in.count() : 0);
  cuda::place_edges(edges.positions.data(), in.count(), values.data(), edges.values.data(),
                    edges.edge_ids.data());
  synchronise(device);
}

/// Some edges are equal: one is left of each.
void merge(const EdgeInput& in, const BuildOptions& options, Edges& edges) {
  const Device device = options.device;
  const bool sum = options.duplicates == Duplicates::sum;
  const OnDevice<float> values(in.values, device);
  Buffer<EdgeOffset> groups = array_on<EdgeOffset>(device, in.count());
  cuda::number_groups(edges.keys.data(), in.count(), groups.data(), device);
  EdgeOffset merged = 0;
  copy_bytes(&merged, groups.data() + in.count() - 1, sizeof(merged), device);
  synchronise(device);
  const bool has_values = !in.values.empty() || sum;
  Buffer<EdgeKey> keys = array_on<EdgeKey>(device, merged);
  edges.values = array_on<float>(device, has_values ? merged : 0);
  edges.edge_ids = array_on<EdgeOffset>(device, options.keep_edge_ids ? in.count() : 0);
  cuda::merge_groups(edges.keys.data(), edges.positions.data(), groups.data(), in.count(),
                     values.data(), sum, {keys.data(), edges.values.data(), edges.edge_ids.data()});
  synchronise(device);
  edges.keys = std::move(keys);
}

Graph graph_of(const EdgeInput& in, Edges edges, Device device) {
  Buffer<EdgeOffset> offsets = array_on<EdgeOffset>(device, std::int64_t{in.num_rows} + 1);
  Buffer<VertexId> cols = array_on<VertexId>(device, edges.keys.size());
  cuda::unpack_keys(edges.keys.data(), edges.keys.size(), in.num_rows,
                    cuda::KeyBits(in.num_rows, in.num_cols), offsets.data(), cols.data());
  synchronise(device);
  edges.keys = {};
  const Graph graph = cuda::graph_on(device, in.num_rows, in.num_cols, offsets, std::move(cols));
  return graph.with_values(cuda::to_host(edges.values, device))
      .with_edge_ids(cuda::to_host(edges.edge_ids, device));
}

Graph with_self_loops_on_device(const Graph& graph) {
  const Device device = graph.device();
  const auto old = cuda::device_rows(graph, device);
  const Buffer<EdgeOffset> old_offsets = cuda::to_device(graph.row_offsets().span(), device);
  const Buffer<float> old_values = cuda::to_device(graph.values().span(), device);
  cuda::LoopedRows rows;
  rows.old_offsets = old_offsets.data();
  rows.old_cols = old->indices.data();
  rows.old_values = old_values.data();
  rows.num_rows = graph.num_rows();
  rows.num_edges = graph.num_edges();

  Buffer<EdgeOffset> offsets = array_on<EdgeOffset>(device, std::int64_t{rows.num_rows} + 1);
  cuda::count_with_loops(rows, offsets.data());
  cuda::exclusive_scan(offsets.data(), offsets.size(), device);
  EdgeOffset total = 0;
  copy_bytes(&total, offsets.data() + rows.num_rows, sizeof(total), device);
  synchronise(device);
  Buffer<VertexId> cols = array_on<VertexId>(device, total);
  Buffer<float> values = array_on<float>(device, graph.has_values() ? total : 0);
  Buffer<EdgeOffset> ids = cuda::to_device(graph.edge_ids().span(), device);
  rows.offsets = offsets.data();
  rows.cols = cols.data();
  rows.values = values.data();
  cuda::write_with_loops(rows);
  cuda::move_edge_ids(rows, ids.data(), ids.size());
  synchronise(device);
  return cuda::graph_on(device, graph.num_rows(), graph.num_cols(), offsets, std::move(cols))
      .with_values(cuda::to_host(values, device))
      .with_edge_ids(cuda::to_host(ids, device));
}

}  // namespace

Graph build_on_device(const EdgeInput& in, const BuildOptions& options) {
  require_available(options.device);
  const Device device = options.device;
  const CurrentDevice current(device.index);
  report(options.progress, "sorting edges", 0, in.count());
  // Equal edges are told apart by their positions only where something of theirs is kept.
  const bool with_positions = !in.values.empty() || options.keep_edge_ids;
  Edges edges = sorted_edges(in, with_positions, device);
  report(options.progress, "sorting edges", in.count(), in.count());
  const EdgeOffset repeated = cuda::first_repeated(edges.keys.data(), edges.keys.size(), device);
  if (repeated == cuda::no_edge) {
    place(in, options, edges);
  } else if (options.duplicates == Duplicates::reject) {
    report_repeated_key(in, edges.keys.data() + repeated, device);
  } else {
    merge(in, options, edges);
  }
  return graph_of(in, std::move(edges), device);
}

Graph circulant_on_device(VertexId num_vertices, VertexId degree, VertexId stride, Device device) {
  require_available(device);
  const CurrentDevice current(device.index);
  const EdgeOffset count = checked_area(num_vertices, degree);
  Buffer<VertexId> rows = array_on<VertexId>(device, count),
                   cols = array_on<VertexId>(device, count);
  cuda::fill_circulant(num_vertices, degree, stride, rows.data(), cols.data());
  synchronise(device);
  BuildOptions options;
  options.device = device;
  return from_coo(num_vertices, num_vertices, rows.span(), cols.span(), {}, options);
}

Graph gcn_normalised_on_device(const Graph& graph, bool add_self_loops) {
  const Device device = graph.device();
  const CurrentDevice current(device.index);
  const Graph looped = add_self_loops ? with_self_loops_on_device(graph) : graph;
  const Buffer<EdgeOffset> offsets = cuda::to_device(looped.row_offsets().span(), device);
  const Buffer<float> values = cuda::to_device(looped.values().span(), device);
  Buffer<float> scale = array_on<float>(device, looped.num_rows());
  cuda::inverse_roots_of_degrees(offsets.data(), values.data(), looped.num_rows(), scale.data());
  const SharedArray<float> on_host = cuda::to_host(scale, device);
  return looped.with_scales(on_host, on_host);
}

}  // namespace tessera::detail
