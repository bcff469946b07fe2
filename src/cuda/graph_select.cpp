// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/rows.hpp"
#include "cuda/select_rows.hpp"
#include "graph/access.hpp"
#include "graph/device_build.hpp"

/// Parts of graphs where they lie: the same arrays as on the CPU, bit for bit.
namespace tessera::detail {
namespace {

using cuda_backend::CurrentDevice;

/// At most so many edges stay.
EdgeOffset sum_of_degrees(const Graph& graph, std::span<const VertexId> rows) {
  EdgeOffset sum = 0;
  for (const VertexId row : rows) sum += graph.degree(row);
  return sum;
}

/// The result while it is made.
class Selected {
 public:
  Selected(const Graph& graph, std::span<const VertexId> rows, const Place& place)
      : graph_(graph),
        place_(place),
        old_(cuda::device_rows(graph, place)),
        old_values_(cuda::array_in(GraphAccess::values(graph), place)),
        selected_(cuda::to_device(rows, place)),
        most_edges_(sum_of_degrees(graph, rows)),
        report_(1, place),
        offsets_(std::ssize(rows) + 1, place),
        cols_(most_edges_, place),
        values_(graph.has_values() ? most_edges_ : 0, place) {
    cuda::clear(report_, place);
    selection_.old_offsets = old_->offsets();
    selection_.old_cols = old_->indices.data();
    selection_.old_values = old_values_.data();
    selection_.selected = selected_.data();
    selection_.num_rows = static_cast<VertexId>(rows.size());
    selection_.offsets = offsets_.data();
    selection_.cols = cols_.data();
    selection_.values = values_.data();
    made_.num_rows = selection_.num_rows;
    made_.num_cols = graph.num_cols();
  }

  /// Drops the edges of columns that are not among the rows, and numbers the others as the rows.
  void select_columns() {
    new_numbers_ = Buffer<VertexId>(graph_.num_rows(), place_);
    cuda::clear(new_numbers_, place_);
    cuda::number_selected(selected_.data(), selection_.num_rows, new_numbers_.data(),
                          report_.data(), place_.stream);
    selection_.new_numbers = new_numbers_.data();
    keeps_ids_ = graph_.has_edge_ids();
    old_edges_ = Buffer<EdgeOffset>(keeps_ids_ ? most_edges_ : 0, place_);
    selection_.old_edges = old_edges_.data();
    made_.num_cols = selection_.num_rows;
  }

  /// False where a row was listed twice and must not be.
  bool make() {
    cuda::count_selected(selection_, place_.stream);
    cuda::exclusive_scan(offsets_.data(), offsets_.size(), place_);
    cuda::write_selected(selection_, report_.data(), place_.stream);
    cuda::SelectionReport found;
    cuda::set_made_offsets(made_, offsets_, most_edges_, place_,
                           {report_.data(), sizeof(found), &found});
    if (found.repeated_vertices != 0) return false;
    if (found.falling_columns != 0) sort_columns();
    return true;
  }

  Graph finish() && {
    const EdgeOffset num_edges = made_.num_edges;
    PlacedArray<EdgeOffset> ids = keeps_ids_ ? moved_ids() : PlacedArray<EdgeOffset>();
    made_.indices = cuda::first_of(std::move(cols_), num_edges);
    const EdgeOffset num_values = graph_.has_values() ? num_edges : 0;
    const Graph graph =
        cuda::graph_on(place_, std::move(made_))
            .with_values(cuda::placed(cuda::first_of(std::move(values_), num_values), place_))
            .with_edge_ids(std::move(ids));
    return graph_.has_repeated_edges() ? graph.with_repeated_edges() : graph;
  }

  /// One of the old scales, in the order of the rows.
  PlacedArray<float> of_rows(const PlacedArray<float>& scale) const {
    if (scale.empty()) return {};
    const SharedArray<float> old = cuda::array_in(scale, place_);
    Buffer<float> taken(selection_.num_rows, place_);
    cuda::gather(old.data(), selected_.data(), taken.size(), taken.data(), place_.stream);
    return cuda::placed(std::move(taken), place_);
  }

 private:
  /// Rows may be listed in any order, and then their columns fall now and then.
  void sort_columns() {
    const EdgeOffset count = made_.num_edges;
    const cuda::KeyBits bits(made_.num_rows, made_.num_cols);
    Buffer<cuda::EdgeKey> keys(count, place_);
    Buffer<EdgeOffset> positions(count, place_);
    cuda::key_edges(offsets_.data(), made_.num_rows, cols_.data(), count, bits.col, keys.data(),
                    positions.data(), place_.stream);
    cuda::sort_keys(keys, positions, bits.all, place_);
    Buffer<float> values(values_.size(), place_);
    cuda::write_edges({keys.data(), positions.data(), nullptr, count, count, made_.num_rows,
                       bits.col, values_.data(), offsets_.data(), cols_.data(), values.data()},
                      place_.stream);
    values_ = std::move(values);
    if (!keeps_ids_) return;
    Buffer<EdgeOffset> sorted(old_edges_.size(), place_);
    cuda::gather(old_edges_.data(), positions.data(), count, sorted.data(), place_.stream);
    old_edges_ = std::move(sorted);
  }

  PlacedArray<EdgeOffset> moved_ids() const {
    const SharedArray<EdgeOffset> old_ids = cuda::array_in(GraphAccess::edge_ids(graph_), place_);
    Buffer<EdgeOffset> ids(old_ids.size(), place_);
    copy_bytes(ids.data(), old_ids.data(), checked_bytes(ids.size(), sizeof(EdgeOffset)),
               place_.device, place_.stream);
    Buffer<EdgeOffset> moved(graph_.num_edges(), place_);
    cuda::clear(moved, place_);
    cuda::renumber_edge_ids(old_edges_.data(), made_.num_edges, moved.data(), ids.data(),
                            ids.size(), place_.stream);
    return cuda::placed(std::move(ids), place_);
  }

  const Graph& graph_;
  Place place_;
  std::shared_ptr<const cuda::DeviceRows> old_;
  SharedArray<float> old_values_;
  Buffer<VertexId> selected_;
  EdgeOffset most_edges_;
  Buffer<cuda::SelectionReport> report_;
  Buffer<VertexId> new_numbers_;
  Buffer<EdgeOffset> offsets_;
  Buffer<VertexId> cols_;
  Buffer<float> values_;
  bool keeps_ids_ = false;
  Buffer<EdgeOffset> old_edges_;
  cuda::Selection selection_;
  cuda::DeviceRows made_;
};

}  // namespace

std::optional<Graph> induced_on_device(const Graph& graph, std::span<const VertexId> vertices,
                                       const Place& place) {
  const auto is_there = [&](VertexId vertex) { return vertex >= 0 && vertex < graph.num_rows(); };
  if (!std::all_of(vertices.begin(), vertices.end(), is_there)) return {};
  const CurrentDevice current(place.device.index);
  // More vertices than there are must repeat some; so many edges would not fit.
  if (std::ssize(vertices) > graph.num_rows()) return {};
  Selected selected(graph, vertices, place);
  selected.select_columns();
  if (!selected.make()) return {};
  PlacedArray<float> row_scale = selected.of_rows(GraphAccess::row_scale(graph));
  PlacedArray<float> col_scale = selected.of_rows(GraphAccess::col_scale(graph));
  return std::move(selected).finish().with_scales(std::move(row_scale), std::move(col_scale));
}

Graph selected_rows_on_device(const Graph& graph, std::span<const VertexId> rows, Stream stream) {
  Place place = graph.place();
  place.stream = stream;
  const CurrentDevice current(place.device.index);
  Selected selected(graph, rows, place);
  selected.make();
  PlacedArray<float> row_scale = selected.of_rows(GraphAccess::row_scale(graph));
  return std::move(selected).finish().with_scales(std::move(row_scale),
                                                  GraphAccess::col_scale(graph));
}

Graph in_place_on_device(const Graph& graph, const Place& place) {
  require_available(place.device);
  const CurrentDevice current(place.device.index);
  cuda::DeviceRows rows;
  rows.num_rows = graph.num_rows();
  rows.num_cols = graph.num_cols();
  cuda::set_offsets(rows, graph.row_offsets(), place);
  rows.indices = cuda::to_device(graph.col_indices().span(), place);
  const auto there = [&]<class T>(const PlacedArray<T>& array) {
    return cuda::placed(cuda::to_device(array.here().span(), place), place);
  };
  const Graph placed =
      cuda::graph_on(place, std::move(rows))
          .with_values(there(GraphAccess::values(graph)))
          .with_scales(there(GraphAccess::row_scale(graph)), there(GraphAccess::col_scale(graph)))
          .with_edge_ids(there(GraphAccess::edge_ids(graph)));
  return graph.has_repeated_edges() ? placed.with_repeated_edges() : placed;
}

}  // namespace tessera::detail
