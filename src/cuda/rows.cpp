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

namespace tessera::cuda {
namespace {

std::string key_of_rows(Device device) { return "rows on " + to_string(device); }
std::string key_of_columns(Device device) { return "columns on " + to_string(device); }

/// Nothing is made where there is nothing.
std::shared_ptr<const DeviceRows> kept(const Graph& graph, const std::string& key) {
  const auto none = []() -> std::shared_ptr<const void> { return nullptr; };
  return std::static_pointer_cast<const DeviceRows>(graph.derived(key, none));
}

/// With 32 bits where they fit.
void set_offsets(DeviceRows& rows, SharedArray<EdgeOffset> offsets, Device device) {
  if (offsets.back() <= std::numeric_limits<std::int32_t>::max()) {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    rows.narrow_offsets = to_device(std::span<const std::int32_t>(narrow), device);
  } else {
    rows.wide_offsets = to_device(offsets.span(), device);
  }
  rows.num_edges = offsets.back();
  rows.host_offsets = std::move(offsets);
}

std::shared_ptr<const DeviceRows> copied_rows(const Graph& graph, Device device) {
  auto rows = std::make_shared<DeviceRows>();
  rows->num_rows = graph.num_rows();
  rows->num_cols = graph.num_cols();
  set_offsets(*rows, graph.row_offsets(), device);
  rows->indices = to_device(graph.col_indices().span(), device);
  return rows;
}

/// A stable sort of A's entries, which lie by rows, by their columns.
std::shared_ptr<const DeviceRows> sorted_columns(const Graph& graph, Device device) {
  const cuda_backend::CurrentDevice current(device.index);
  MemoryResource& memory = default_memory(device);
  const EdgeOffset count = graph.num_edges();
  const auto by_rows = device_rows(graph, device);
  Buffer<std::uint32_t> columns(count, memory);
  auto result = std::make_shared<DeviceRows>();
  result->num_rows = graph.num_cols();
  result->num_cols = graph.num_rows();
  result->positions = Buffer<EdgeOffset>(count, memory);
  number_columns(by_rows->indices.data(), count, columns.data(), result->positions.data());
  const auto last = static_cast<std::uint32_t>(graph.num_cols() > 0 ? graph.num_cols() - 1 : 0);
  sort_columns(columns, result->positions, std::bit_width(last), device);

  Buffer<EdgeOffset> offsets(std::int64_t{graph.num_cols()} + 1, memory);
  offsets_of_columns(columns.data(), count, graph.num_cols(), offsets.data());
  const Buffer<EdgeOffset> row_offsets = to_device(graph.row_offsets().span(), device);
  result->indices = Buffer<VertexId>(count, memory);
  rows_of_positions(result->positions.data(), count, row_offsets.data(), graph.num_rows(),
                    result->indices.data());
  set_offsets(*result, to_host(offsets, device), device);
  return result;
}

}  // namespace

std::shared_ptr<const DeviceRows> device_rows(const Graph& graph, Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> { return copied_rows(graph, device); };
  return std::static_pointer_cast<const DeviceRows>(graph.derived(key_of_rows(device), make));
}

std::shared_ptr<const DeviceRows> device_columns(const Graph& graph, Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> { return sorted_columns(graph, device); };
  return std::static_pointer_cast<const DeviceRows>(graph.derived(key_of_columns(device), make));
}

std::shared_ptr<const DeviceRows> cached_rows(const Graph& graph, Device device) {
  return kept(graph, key_of_rows(device));
}

std::shared_ptr<const DeviceRows> cached_columns(const Graph& graph, Device device) {
  return kept(graph, key_of_columns(device));
}

Graph graph_on(Device device, VertexId num_rows, VertexId num_cols,
               const Buffer<EdgeOffset>& row_offsets, Buffer<VertexId> cols) {
  auto rows = std::make_shared<DeviceRows>();
  rows->num_rows = num_rows;
  rows->num_cols = num_cols;
  set_offsets(*rows, to_host(row_offsets, device), device);
  rows->indices = std::move(cols);
  const auto fetch = [rows, device]() -> SharedArray<VertexId> {
    return to_host(rows->indices, device);
  };
  const Graph graph(num_rows, num_cols, rows->host_offsets, device, fetch);
  graph.derived(key_of_rows(device), [&]() -> std::shared_ptr<const void> { return rows; });
  return graph;
}

}  // namespace tessera::cuda
