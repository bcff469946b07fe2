// SPDX-License-Identifier: Apache-2.0
#include "cuda/rows.hpp"

#include <limits>
#include <string>
#include <vector>

#include "cuda/array.hpp"

namespace tessera::cuda {
namespace {

std::shared_ptr<const DeviceRows> copied(VertexId num_rows, VertexId num_cols,
                                         const SharedArray<EdgeOffset>& offsets,
                                         const SharedArray<VertexId>& indices,
                                         const SharedArray<EdgeOffset>& positions, Device device) {
  auto rows = std::make_shared<DeviceRows>();
  rows->num_rows = num_rows;
  rows->num_cols = num_cols;
  rows->num_edges = indices.size();
  if (indices.size() <= std::numeric_limits<std::int32_t>::max()) {
    const std::vector<std::int32_t> narrow(offsets.begin(), offsets.end());
    rows->narrow_offsets = to_device(std::span<const std::int32_t>(narrow), device);
  } else {
    rows->wide_offsets = to_device(offsets.span(), device);
  }
  rows->indices = to_device(indices.span(), device);
  rows->positions = to_device(positions.span(), device);
  return rows;
}

}  // namespace

std::shared_ptr<const DeviceRows> device_rows(const Graph& graph, Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return copied(graph.num_rows(), graph.num_cols(), graph.row_offsets(), graph.col_indices(), {},
                  device);
  };
  return std::static_pointer_cast<const DeviceRows>(
      graph.derived("rows on " + to_string(device), make));
}

std::shared_ptr<const DeviceRows> device_columns(const Graph& graph, Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    const Csc& csc = graph.csc();
    return copied(graph.num_cols(), graph.num_rows(), csc.col_offsets, csc.row_indices,
                  csc.csr_positions, device);
  };
  return std::static_pointer_cast<const DeviceRows>(
      graph.derived("columns on " + to_string(device), make));
}

}  // namespace tessera::cuda
