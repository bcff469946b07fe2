// SPDX-License-Identifier: Apache-2.0
#include "cuda/rows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/kept_with.hpp"
#include "cuda/pinned.hpp"
#include "cuda/select_rows.hpp"

namespace tessera::cuda {
namespace {

constexpr const char* rows_name = "rows";
constexpr const char* columns_name = "columns";

/// Under which a graph that was built on a GPU has its rows, of whatever memory they are.
std::string own_rows_key(Device device) { return "own rows on " + to_string(device); }

/// Null where there is nothing yet: nothing is made.
std::shared_ptr<const DeviceRows> cached(const Graph& graph, const std::string& key,
                                         Stream stream) {
  auto kept =
      std::static_pointer_cast<const Kept<DeviceRows>>(detail::GraphAccess::known(graph, key));
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

SharedArray<EdgeOffset> wide_offsets(const DeviceRows& rows, const Place& place) {
  if (rows.narrow_offsets.empty()) return to_host(rows.wide_offsets, place);
  const Buffer<std::int32_t> narrow = to_host(rows.narrow_offsets, place);
  return std::vector<EdgeOffset>(narrow.begin(), narrow.end());
}

/// With offsets in this process: waits for them where nobody knows them.
DeviceRows sorted_columns(const Graph& graph, const Place& place) {
  DeviceRows columns = transposed_rows(*device_rows(graph, place), place);
  if (detail::GraphAccess::known(graph, detail::GraphAccess::col_offsets_key) != nullptr) {
    columns.host_offsets = detail::GraphAccess::col_offsets(graph);
  } else {
    columns.host_offsets = wide_offsets(columns, place);
    know_columns(graph, columns.host_offsets);
  }
  return columns;
}

}  // namespace

void set_offsets(DeviceRows& rows, SharedArray<EdgeOffset> offsets, const Place& place) {
  if (offsets.back() <= std::numeric_limits<std::int32_t>::max()) {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    rows.narrow_offsets = to_device(narrow, place);
  } else {
    rows.wide_offsets = to_device(offsets.span(), place);
  }
  rows.num_edges = offsets.back();
  rows.host_offsets = std::move(offsets);
}

void set_made_offsets(DeviceRows& rows, const Buffer<EdgeOffset>& offsets, EdgeOffset most_edges,
                      const Place& place, const Brought& also) {
  const std::int64_t count = std::int64_t{rows.num_rows} + 1;
  const bool narrow = most_edges <= std::numeric_limits<std::int32_t>::max();
  const std::size_t bytes =
      checked_bytes(count, narrow ? sizeof(std::int32_t) : sizeof(EdgeOffset));
  PinnedMemory memory(bytes + also.bytes, place);
  const void* const also_here = also.bytes > 0 ? memory.bring(also.there, also.bytes) : nullptr;
  Buffer<EdgeOffset> here(count);
  if (narrow) {
    Buffer<std::int32_t> fitting(count, place);
    narrow_offsets(offsets.data(), count, fitting.data(), place.stream);
    const auto* const brought =
        static_cast<const std::int32_t*>(memory.bring(fitting.data(), bytes));
    memory.wait();
    std::copy_n(brought, count, here.data());
    rows.narrow_offsets = std::move(fitting);
  } else {
    Buffer<EdgeOffset> own(count, place);
    copy_bytes(own.data(), offsets.data(), bytes, place.device, place.stream);
    const auto* const brought = static_cast<const EdgeOffset*>(memory.bring(own.data(), bytes));
    memory.wait();
    std::copy_n(brought, count, here.data());
    rows.wide_offsets = std::move(own);
  }
  if (also.bytes > 0) std::memcpy(also.here, also_here, also.bytes);
  rows.num_edges = here[count - 1];
  rows.host_offsets = std::move(here);
}

DeviceRows transposed_rows(const DeviceRows& rows, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const Stream stream = place.stream;
  const EdgeOffset count = rows.num_edges;
  DeviceRows result;
  result.num_rows = rows.num_cols;
  result.num_cols = rows.num_rows;
  result.num_edges = count;
  Buffer<std::uint32_t> columns(count, place);
  Buffer<EdgeOffset> positions(count, place);
  number_columns(rows.indices.data(), count, columns.data(), positions.data(), stream);
  const auto last = static_cast<std::uint32_t>(rows.num_cols > 0 ? rows.num_cols - 1 : 0);
  sort_columns(columns, positions, std::bit_width(last), place);

  const std::int64_t num_offsets = std::int64_t{rows.num_cols} + 1;
  Buffer<VertexId> indices(count, place);
  const auto finish = [&]<class Offset>(Buffer<Offset> offsets) {
    transpose_offsets({columns.data(), positions.data(), count}, rows.offsets(), rows.num_rows,
                      rows.num_cols, offsets.data(), indices.data(), stream);
    return offsets;
  };
  if (count <= std::numeric_limits<std::int32_t>::max()) {
    result.narrow_offsets = finish(Buffer<std::int32_t>(num_offsets, place));
  } else {
    result.wide_offsets = finish(Buffer<EdgeOffset>(num_offsets, place));
  }
  result.positions = std::move(positions);
  result.indices = std::move(indices);
  return result;
}

void know_columns(const Graph& graph, const SharedArray<EdgeOffset>& col_offsets) {
  using Access = detail::GraphAccess;
  Access::know(graph, Access::col_offsets_key,
               std::make_shared<SharedArray<EdgeOffset>>(col_offsets));
}

void keep_columns(const Graph& graph, DeviceRows columns, const Place& place) {
  know_columns(graph, columns.host_offsets);
  detail::GraphAccess::know(graph, kept_key(columns_name, place),
                            std::make_shared<const Kept<DeviceRows>>(std::move(columns), place),
                            Keeping::for_users);
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
  set_made_offsets(rows, row_offsets, cols.size(), place);
  rows.indices = first_of(std::move(cols), rows.num_edges);
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
  detail::GraphAccess::know(graph, own_rows_key(place.device), kept);
  return graph;
}

}  // namespace tessera::cuda
