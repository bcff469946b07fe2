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

/// Edges on their way to a graph.
struct Edges {
  Buffer<cuda::EdgeReport> report;
  Buffer<EdgeKey> keys;          ///< sorted
  Buffer<EdgeOffset> positions;  ///< in the input; empty where nobody needs them
  Buffer<EdgeOffset> offsets;
  Buffer<VertexId> cols;
  Buffer<float> values;
  Buffer<EdgeOffset> edge_ids;
};

[[noreturn]] void report_bad_edge(const EdgeInput& in, EdgeOffset position, const Place& place) {
  report_out_of_range(in, position, cuda::value_at(in.rows.data() + position, place),
                      cuda::value_at(in.cols.data() + position, place));
}

[[noreturn]] void report_bad_value(const float* values, EdgeOffset position, const char* fix,
                                   const Place& place) {
  report_nonfinite(position, cuda::value_at(values + position, place), fix);
}

[[noreturn]] void report_repeated_key(const EdgeInput& in, const EdgeKey* key, const Place& place) {
  const EdgeKey found = cuda::value_at(key, place);
  const cuda::KeyBits bits(in.num_rows, in.num_cols);
  report_duplicate(in, static_cast<VertexId>(found >> bits.col),
                   static_cast<VertexId>(found & ((EdgeKey{1} << bits.col) - 1)));
}

/// Whether the result has a value per edge: those given, or of loops alone where there are no
/// edges.
bool keeps_values(const EdgeInput& in, const EdgeWork& work) {
  return work.values && (!in.values.empty() || (work.loops && work.loop_weight != 1));
}

/// Keys of all edges, and of the loops that are to be there, in order.
Edges sorted_edges(const EdgeInput& in, const float* values, const BuildOptions& options,
                   const EdgeWork& work) {
  const Place place = options.place();
  const OnDevice<VertexId> rows(in.rows, place), cols(in.cols, place);
  const bool any_value = options.nonfinite == Nonfinite::allow;
  const cuda::GivenEdges given = {rows.data(), cols.data(), any_value ? nullptr : values,
                                  in.count(),  in.num_rows, in.num_cols,
                                  work.loops};
  // Equal edges are told apart by their positions only where something of theirs is kept.
  const bool with_positions = keeps_values(in, work) || options.keep_edge_ids;
  const EdgeOffset count = given.count_with_loops();
  Edges edges;
  edges.report = Buffer<cuda::EdgeReport>(1, place);
  const cuda::EdgeReport nothing;
  copy_bytes(edges.report.data(), &nothing, sizeof(nothing), place.device, place.stream);
  edges.keys = Buffer<EdgeKey>(count, place);
  edges.positions = Buffer<EdgeOffset>(with_positions ? count : 0, place);
  cuda::pack_edges(given, edges.keys.data(), edges.positions.data(), edges.report.data(),
                   place.stream);
  cuda::sort_keys(edges.keys, edges.positions, cuda::KeyBits(in.num_rows, in.num_cols).all, place);
  return edges;
}

/// Rows of all edges, as if no two were equal.
void write_rows(const EdgeInput& in, const float* values, const BuildOptions& options,
                const EdgeWork& work, Edges& edges) {
  const Place place = options.place();
  const EdgeOffset count = edges.keys.size();
  const int col_bits = cuda::KeyBits(in.num_rows, in.num_cols).col;
  Buffer<EdgeOffset> places(work.loops ? count + 1 : 0, place);
  cuda::find_repeated(edges.keys.data(), count, col_bits, places.data(), edges.report.data(),
                      place.stream);
  if (work.loops) cuda::exclusive_scan(places.data(), places.size(), place);
  const bool has_values = keeps_values(in, work);
  edges.offsets = Buffer<EdgeOffset>(std::int64_t{in.num_rows} + 1, place);
  edges.cols = Buffer<VertexId>(count, place);
  edges.values = Buffer<float>(has_values ? count : 0, place);
  edges.edge_ids = Buffer<EdgeOffset>(options.keep_edge_ids ? in.count() : 0, place);
  cuda::write_edges({edges.keys.data(), edges.positions.data(), places.data(), count, in.count(),
                     in.num_rows, col_bits, values, edges.offsets.data(), edges.cols.data(),
                     edges.values.data(), edges.edge_ids.data(), work.loop_weight},
                    place.stream);
}

/// Some edges are equal: one is left of each.
Graph merged(const EdgeInput& in, const float* values, const BuildOptions& options,
             const Edges& edges) {
  const Place place = options.place();
  const bool sum = options.duplicates == Duplicates::sum;
  Buffer<EdgeOffset> groups(in.count(), place);
  cuda::number_groups(edges.keys.data(), in.count(), groups.data(), place);
  const bool has_values = !in.values.empty() || sum;
  Buffer<EdgeKey> keys(in.count(), place);
  Buffer<float> sums(has_values ? in.count() : 0, place);
  Buffer<EdgeOffset> ids(options.keep_edge_ids ? in.count() : 0, place);
  EdgeOffset found[] = {0, cuda::no_edge};  // how many are left, the first sum that is not finite
  Buffer<EdgeOffset> found_there(2, place);
  copy_bytes(found_there.data(), found, sizeof(found), place.device, place.stream);
  const bool any_value = options.nonfinite == Nonfinite::allow;
  cuda::merge_groups(
      edges.keys.data(), edges.positions.data(), groups.data(), in.count(), values, sum,
      {keys.data(), sums.data(), ids.data(), any_value ? nullptr : found_there.data() + 1},
      place.stream);
  copy_bytes(found_there.data(), groups.data() + in.count() - 1, sizeof(EdgeOffset), place.device,
             place.stream);
  copy_bytes(found, found_there.data(), sizeof(found), place.device, place.stream);
  synchronise(place.device, place.stream);
  if (found[1] != cuda::no_edge) report_bad_value(sums.data(), found[1], smaller_fix, place);

  Buffer<EdgeOffset> offsets(std::int64_t{in.num_rows} + 1, place);
  Buffer<VertexId> cols(found[0], place);
  cuda::write_edges(
      {keys.data(), nullptr, nullptr, found[0], found[0], in.num_rows,
       cuda::KeyBits(in.num_rows, in.num_cols).col, nullptr, offsets.data(), cols.data()},
      place.stream);
  const EdgeOffset num_values = has_values ? found[0] : 0;
  return cuda::graph_on(place, in.num_rows, in.num_cols, offsets, std::move(cols))
      .with_values(cuda::placed(cuda::first_of(std::move(sums), num_values), place))
      .with_edge_ids(cuda::placed(std::move(ids), place));
}

/// One step after the other, for edges that were merged.
Graph worked_on(const Graph& graph, const EdgeWork& work) {
  if (work.weights) return gcn_normalised_on_device(graph, work.loops, work.loop_weight);
  const Graph valued = work.values ? graph : graph.with_values({});
  return work.loops ? with_self_loops_on_device(valued, work.loop_weight) : valued;
}

}  // namespace

Graph build_on_device(const EdgeInput& in, const BuildOptions& options, const EdgeWork& work) {
  require_available(options.device);
  const Place place = options.place();
  const CurrentDevice current(place.device.index);
  report(options.progress, "sorting edges", 0, in.count());
  const OnDevice<float> values(in.values, place);
  Edges edges = sorted_edges(in, values.data(), options, work);
  write_rows(in, values.data(), options, work, edges);
  Buffer<float> scale(work.weights ? in.num_rows : 0, place);
  if (work.weights) {
    cuda::inverse_roots_of_degrees({nullptr, edges.offsets.data()}, edges.values.data(),
                                   in.num_rows, scale.data(), place.stream);
  }
  cuda::DeviceRows rows;
  rows.num_rows = in.num_rows;
  rows.num_cols = in.num_cols;
  cuda::EdgeReport found;
  cuda::set_made_offsets(rows, edges.offsets, edges.keys.size(), place,
                         {edges.report.data(), sizeof(found), &found});
  report(options.progress, "sorting edges", in.count(), in.count());

  if (found.out_of_range != cuda::no_edge) report_bad_edge(in, found.out_of_range, place);
  if (found.nonfinite != cuda::no_edge) {
    report_bad_value(values.data(), found.nonfinite, finite_fix, place);
  }
  const bool repeats = found.repeated != cuda::no_edge;
  if (repeats && options.duplicates == Duplicates::reject) {
    report_repeated_key(in, edges.keys.data() + found.repeated, place);
  }
  if (repeats && options.duplicates != Duplicates::keep) {
    if (!work.is_any()) return merged(in, values.data(), options, edges);
    return worked_on(build_on_device(in, options, {}), work);
  }
  const EdgeOffset num_edges = rows.num_edges;
  const EdgeOffset num_values = edges.values.empty() ? 0 : num_edges;
  rows.indices = cuda::first_of(std::move(edges.cols), num_edges);
  Graph graph =
      cuda::graph_on(place, std::move(rows))
          .with_values(cuda::placed(cuda::first_of(std::move(edges.values), num_values), place))
          .with_edge_ids(cuda::placed(std::move(edges.edge_ids), place));
  if (work.weights) {
    const PlacedArray<float> scales = cuda::placed(std::move(scale), place);
    graph = graph.with_scales(scales, scales);
  }
  return repeats ? graph.with_repeated_edges() : graph;
}

void know_columns_on_device(const Graph& graph) {
  const CurrentDevice current(graph.device().index);
  cuda::device_columns(graph, graph.place());
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
    report_out_of_range(word, cuda::value_at(wide.data() + bad, place), bound, bad);
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
