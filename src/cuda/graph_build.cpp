// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/rows.hpp"
#include "graph/access.hpp"
#include "graph/device_build.hpp"
#include "graph/narrow_indices.hpp"

/// Graphs built on a GPU: the same arrays as on the CPU, bit for bit.
namespace tessera::detail {
namespace {

using cuda::EdgeKey;
using cuda_backend::CurrentDevice;

/// The caller's array, copied if it is not on the GPU already.
template <class T>
class OnDevice {
 public:
  OnDevice(std::span<const T> values, const Place& place) : data_(values.data()) {
    if (cuda_backend::is_on_gpu(data_)) return;
    copy_ = cuda::to_device(values, place);
    data_ = copy_.data();
  }
  const T* data() const noexcept { return data_; }

 private:
  const T* data_;
  Buffer<T> copy_;
};

/// Sorted edges on their way to a graph.
struct Edges {
  /// Those of rows, and behind them the first sum that is not finite: what this process reads.
  Buffer<EdgeOffset> offsets;
  Buffer<EdgeKey> keys;
  Buffer<EdgeOffset> positions;  ///< in the input; empty where nobody needs them
  Buffer<float> values;
  Buffer<EdgeOffset> edge_ids;
};

[[noreturn]] void report_bad_edge(const EdgeInput& in, EdgeOffset position, const Place& place) {
  VertexId row = 0, col = 0;
  copy_bytes(&row, in.rows.data() + position, sizeof(row), place.device, place.stream);
  copy_bytes(&col, in.cols.data() + position, sizeof(col), place.device, place.stream);
  synchronise(place.device, place.stream);
  report_out_of_range(in, position, row, col);
}

[[noreturn]] void report_bad_value(const float* values, EdgeOffset position, const char* fix,
                                   const Place& place) {
  float value = 0;
  copy_bytes(&value, values + position, sizeof(value), place.device, place.stream);
  synchronise(place.device, place.stream);
  report_nonfinite(position, value, fix);
}

[[noreturn]] void report_repeated_key(const EdgeInput& in, const EdgeKey* key, const Place& place) {
  EdgeKey found = 0;
  copy_bytes(&found, key, sizeof(found), place.device, place.stream);
  synchronise(place.device, place.stream);
  const cuda::KeyBits bits(in.num_rows, in.num_cols);
  report_duplicate(in, static_cast<VertexId>(found >> bits.col),
                   static_cast<VertexId>(found & ((EdgeKey{1} << bits.col) - 1)));
}

Edges sorted_edges(const EdgeInput& in, const float* values, const BuildOptions& options) {
  const Place place = options.place();
  const OnDevice<VertexId> rows(in.rows, place), cols(in.cols, place);
  // Equal edges are told apart by their positions only where something of theirs is kept.
  const bool with_positions = !in.values.empty() || options.keep_edge_ids;
  const bool any_value = options.nonfinite == Nonfinite::allow;
  Edges edges;
  edges.offsets = Buffer<EdgeOffset>(std::int64_t{in.num_rows} + 2, place);
  copy_bytes(edges.offsets.data() + in.num_rows + 1, &cuda::no_edge, sizeof(cuda::no_edge),
             place.device, place.stream);
  edges.keys = Buffer<EdgeKey>(in.count(), place);
  edges.positions = Buffer<EdgeOffset>(with_positions ? in.count() : 0, place);
  const cuda::BadEdges bad =
      cuda::pack_edges({rows.data(), cols.data(), any_value ? nullptr : values, in.count(),
                        in.num_rows, in.num_cols},
                       edges.keys.data(), with_positions ? edges.positions.data() : nullptr, place);
  if (bad.out_of_range != cuda::no_edge) report_bad_edge(in, bad.out_of_range, place);
  if (bad.nonfinite != cuda::no_edge) report_bad_value(values, bad.nonfinite, finite_fix, place);
  cuda::sort_keys(edges.keys, edges.positions, cuda::KeyBits(in.num_rows, in.num_cols).all, place);
  return edges;
}

/// All edges differ, or all are kept: they keep their values and get their places as ids.
void keep_all(const EdgeInput& in, const float* values, const BuildOptions& options, Edges& edges) {
  if (edges.positions.empty()) return;
  const Place place = options.place();
  edges.values = Buffer<float>(static_cast<EdgeOffset>(in.values.size()), place);
  edges.edge_ids = Buffer<EdgeOffset>(options.keep_edge_ids ? in.count() : 0, place);
  cuda::place_edges(edges.positions.data(), in.count(), values, edges.values.data(),
                    edges.edge_ids.data(), place.stream);
}

/// Some edges are equal: one is left of each.
void merge(const EdgeInput& in, const float* values, const BuildOptions& options, Edges& edges) {
  const Place place = options.place();
  const bool sum = options.duplicates == Duplicates::sum;
  const bool any_value = options.nonfinite == Nonfinite::allow;
  Buffer<EdgeOffset> groups(in.count(), place);
  cuda::number_groups(edges.keys.data(), in.count(), groups.data(), place);
  EdgeOffset merged = 0;
  copy_bytes(&merged, groups.data() + in.count() - 1, sizeof(merged), place.device, place.stream);
  synchronise(place.device, place.stream);
  const bool has_values = !in.values.empty() || sum;
  Buffer<EdgeKey> keys(merged, place);
  edges.values = Buffer<float>(has_values ? merged : 0, place);
  edges.edge_ids = Buffer<EdgeOffset>(options.keep_edge_ids ? in.count() : 0, place);
  cuda::merge_groups(edges.keys.data(), edges.positions.data(), groups.data(), in.count(), values,
                     sum,
                     {keys.data(), edges.values.data(), edges.edge_ids.data(),
                      any_value ? nullptr : edges.offsets.data() + in.num_rows + 1},
                     place.stream);
  edges.keys = std::move(keys);
}

Graph graph_of(const EdgeInput& in, Edges edges, const Place& place) {
  Buffer<VertexId> cols(edges.keys.size(), place);
  cuda::unpack_keys(edges.keys.data(), edges.keys.size(), in.num_rows,
                    cuda::KeyBits(in.num_rows, in.num_cols), edges.offsets.data(), cols.data(),
                    place.stream);
  edges.keys = {};
  const auto brought =
      std::make_shared<const Buffer<EdgeOffset>>(cuda::to_host(edges.offsets, place));
  const EdgeOffset bad_sum = (*brought)[in.num_rows + 1];
  if (bad_sum != cuda::no_edge) report_bad_value(edges.values.data(), bad_sum, smaller_fix, place);
  cuda::DeviceRows rows;
  rows.num_rows = in.num_rows;
  rows.num_cols = in.num_cols;
  cuda::set_offsets(rows, {brought, brought->data(), std::int64_t{in.num_rows} + 1}, place);
  rows.indices = std::move(cols);
  return cuda::graph_on(place, std::move(rows))
      .with_values(cuda::placed(std::move(edges.values), place))
      .with_edge_ids(cuda::placed(std::move(edges.edge_ids), place));
}

}  // namespace

Graph build_on_device(const EdgeInput& in, const BuildOptions& options) {
  require_available(options.device);
  const Place place = options.place();
  const CurrentDevice current(place.device.index);
  report(options.progress, "sorting edges", 0, in.count());
  const OnDevice<float> values(in.values, place);
  Edges edges = sorted_edges(in, values.data(), options);
  report(options.progress, "sorting edges", in.count(), in.count());
  const EdgeOffset repeated = cuda::first_repeated(edges.keys.data(), edges.keys.size(), place);
  if (repeated == cuda::no_edge || options.duplicates == Duplicates::keep) {
    keep_all(in, values.data(), options, edges);
  } else if (options.duplicates == Duplicates::reject) {
    report_repeated_key(in, edges.keys.data() + repeated, place);
  } else {
    merge(in, values.data(), options, edges);
  }
  Graph graph = graph_of(in, std::move(edges), place);
  const bool keeps_repeated = repeated != cuda::no_edge && options.duplicates == Duplicates::keep;
  return keeps_repeated ? graph.with_repeated_edges() : graph;
}

SharedArray<VertexId> narrowed_on_device(std::span<const std::int64_t> indices, std::int64_t bound,
                                         const char* word, const Place& place) {
  require_available(place.device);
  const CurrentDevice current(place.device.index);
  const auto count = static_cast<EdgeOffset>(indices.size());
  const OnDevice<std::int64_t> wide(indices, place);
  Buffer<VertexId> narrow(count, place);
  const EdgeOffset bad = cuda::narrow_indices(wide.data(), count, bound, narrow.data(), place);
  if (bad != cuda::no_edge) {
    std::int64_t value = 0;
    copy_bytes(&value, wide.data() + bad, sizeof(value), place.device, place.stream);
    synchronise(place.device, place.stream);
    report_out_of_range(word, value, bound, bad);
  }
  return narrow;
}

Graph circulant_on_device(VertexId num_vertices, VertexId degree, VertexId stride,
                          const Place& place) {
  require_available(place.device);
  const CurrentDevice current(place.device.index);
  const EdgeOffset count = checked_area(num_vertices, degree);
  Buffer<VertexId> rows(count, place), cols(count, place);
  cuda::fill_circulant(num_vertices, degree, stride, rows.data(), cols.data(), place.stream);
  BuildOptions options;
  options.device = place.device;
  options.memory = place.memory;
  options.stream = place.stream;
  return from_coo(num_vertices, num_vertices, rows.span(), cols.span(), {}, options);
}

}  // namespace tessera::detail
