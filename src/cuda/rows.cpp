// SPDX-License-Identifier: Apache-2.0
#include "cuda/rows.hpp"

#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/cached_rows.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/kept_with.hpp"

namespace tessera::cuda {
namespace {

constexpr const char* rows_name = "rows";
constexpr const char* columns_name = "columns";

/// Under which a graph that was built on a GPU has its rows, of whatever memory they are.
std::string own_rows_key(Device device) { return "own rows on " + to_string(device); }

/// Null where there is nothing yet: nothing is made.
std::shared_ptr<const DeviceRows> cached(const Graph& graph, const std::string& key,
                                         Stream stream) {
  const auto none = []() -> std::shared_ptr<const void> { return nullptr; };
  auto kept = std::static_pointer_cast<const Kept<DeviceRows>>(
      detail::GraphAccess::derived(graph, key, none));
  return kept == nullptr ? nullptr : Kept<DeviceRows>::use(std::move(kept), stream);
}

DeviceRows copied_rows(const Graph& graph, const Place& place) {
  DeviceRows rows;
  rows.num_rows = graph.num_rows();
  rows.num_cols = graph.num_cols();
  set_offsets(rows, graph.row_offsets(), place);
  rows.indices = to_device(graph.col_indices().span(), place);
  return rows;
}

/// A stable sort of A's entries, which lie by rows, by their columns.
DeviceRows sorted_columns(const Graph& graph, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const Stream stream = place.stream;
  const EdgeOffset count = graph.num_edges();
  const auto by_rows = device_rows(graph, place);
  Buffer<std::uint32_t> columns(count, place);
  DeviceRows result;
  result.num_rows = graph.num_cols();
  result.num_cols = graph.num_rows();
  Buffer<EdgeOffset> positions(count, place);
  number_columns(by_rows->indices.data(), count, columns.data(), positions.data(), stream);
  const auto last = static_cast<std::uint32_t>(graph.num_cols() > 0 ? graph.num_cols() - 1 : 0);
  sort_columns(columns, positions, std::bit_width(last), place);

  Buffer<EdgeOffset> offsets(std::int64_t{graph.num_cols()} + 1, place);
  offsets_of_columns(columns.data(), count, graph.num_cols(), offsets.data(), stream);
  const Buffer<EdgeOffset> row_offsets = to_device(graph.row_offsets().span(), place);
  Buffer<VertexId> indices(count, place);
  rows_of_positions(positions.data(), count, row_offsets.data(), graph.num_rows(), indices.data(),
                    stream);
  result.positions = std::move(positions);
  result.indices = std::move(indices);
  set_offsets(result, to_host(offsets, place), place);
  return result;
}

}  // namespace

void set_offsets(DeviceRows& rows, SharedArray<EdgeOffset> offsets, const Place& place) {
  if (offsets.back() <= std::numeric_limits<std::int32_t>::max()) {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    rows.narrow_offsets = to_device(std::span<const std::int32_t>(narrow), place);
  } else {
    rows.wide_offsets = to_device(offsets.span(), place);
  }
  rows.num_edges = offsets.back();
  rows.host_offsets = std::move(offsets);
}

std::shared_ptr<const DeviceRows> device_rows(const Graph& graph, const Place& place) {
  if (auto own = cached(graph, own_rows_key(place.device), place.stream)) return own;
  return kept_with<DeviceRows>(graph, rows_name, place, [&] { return copied_rows(graph, place); });
}

std::shared_ptr<const DeviceRows> device_columns(const Graph& graph, const Place& place) {
  return kept_with<DeviceRows>(graph, columns_name, place,
                               [&] { return sorted_columns(graph, place); });
}

std::shared_ptr<const DeviceRows> cached_rows(const Graph& graph, const Place& place) {
  if (auto own = cached(graph, own_rows_key(place.device), place.stream)) return own;
  return cached(graph, kept_key(rows_name, place), place.stream);
}

std::shared_ptr<const DeviceRows> cached_columns(const Graph& graph, const Place& place) {
  return cached(graph, kept_key(columns_name, place), place.stream);
}

Graph graph_on(const Place& place, VertexId num_rows, VertexId num_cols,
               const Buffer<EdgeOffset>& row_offsets, Buffer<VertexId> cols) {
  DeviceRows rows;
  rows.num_rows = num_rows;
  rows.num_cols = num_cols;
  set_offsets(rows, to_host(row_offsets, place), place);
  rows.indices = std::move(cols);
  return graph_on(place, std::move(rows));
}

Graph graph_on(const Place& place, DeviceRows rows) {
  const auto kept = std::make_shared<const Kept<DeviceRows>>(std::move(rows), place);
  const auto lend = [kept](Stream stream) {
    const auto use = Kept<DeviceRows>::use(kept, stream);
    return SharedArray<VertexId>(use, use->indices.data(), use->indices.size());
  };
  const auto own = Kept<DeviceRows>::use(kept, place.stream);
  const SharedArray<VertexId> cols(own, own->indices.data(), own->indices.size());
  const Graph graph(own->num_rows, own->num_cols, own->host_offsets,
                    PlacedArray<VertexId>(cols, place, lend));
  detail::GraphAccess::derived(graph, own_rows_key(place.device),
                               [&]() -> std::shared_ptr<const void> { return kept; });
  return graph;
}

}  // namespace tessera::cuda
