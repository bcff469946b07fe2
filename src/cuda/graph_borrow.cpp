// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "cuda/rows.hpp"
#include "graph/device_build.hpp"
#include "graph/narrow_indices.hpp"
#include "tessera/core/error.hpp"

/// Graphs that read a CSR where it lies on a GPU.
namespace tessera::detail {
namespace {

/// In this process, where schedules are made of them.
SharedArray<EdgeOffset> brought_offsets(const Indices& offsets, const Place& place) {
  const auto bring = [&]<class T>(std::span<const T> there) {
    std::vector<T> here(there.size());
    copy_bytes(here.data(), there.data(), there.size_bytes(), place.device, place.stream);
    synchronise(place.device, place.stream);
    return here;
  };
  if (offsets.is_wide()) return bring(offsets.wide());
  const std::vector<std::int32_t> narrow = bring(offsets.narrow());
  return std::vector<EdgeOffset>(narrow.begin(), narrow.end());
}

/// What a kernel reads before it follows the offsets anywhere.
void check_rising(const SharedArray<EdgeOffset>& offsets) {
  for (std::int64_t row = 0; row + 1 < offsets.size(); ++row) {
    if (offsets[row] > offsets[row + 1]) {
      throw Error(ErrorCode::bad_data,
                  "row_offsets fall from " + std::to_string(offsets[row]) + " to " +
                      std::to_string(offsets[row + 1]) + " at row " + std::to_string(row),
                  "borrow_csr");
    }
  }
}

void check_rows(const Graph& graph, const cuda::DeviceRows& rows, const Place& place) {
  const EdgeOffset bad = cuda::first_unsorted(rows.offsets(), rows.num_rows, rows.indices.data(),
                                              rows.num_edges, rows.num_cols, place);
  if (bad == cuda::no_edge) return;
  graph.validate();  // brings the columns here and says what is wrong
  throw Error(ErrorCode::internal, "a row was called bad but is not", "borrow_csr");
}

}  // namespace

Graph borrow_on_device(VertexId num_rows, VertexId num_cols, const BorrowedCsr& csr,
                       const BorrowOptions& options) {
  const Place place = options.place();
  const cuda_backend::CurrentDevice current(place.device.index);
  cuda::DeviceRows rows;
  rows.num_rows = num_rows;
  rows.num_cols = num_cols;
  SharedArray<EdgeOffset> offsets =
      checked_offsets(brought_offsets(csr.row_offsets, place), csr.col_indices.size());
  check_rising(offsets);
  if (csr.row_offsets.is_wide()) {
    cuda::set_offsets(rows, std::move(offsets), place);
  } else {
    rows.narrow_offsets = {csr.owner, csr.row_offsets.narrow().data(), csr.row_offsets.size()};
    rows.num_edges = offsets.back();
    rows.host_offsets = std::move(offsets);
  }
  if (csr.col_indices.is_wide()) {
    rows.indices = narrowed(csr.col_indices, num_cols, "column", place);
  } else {
    rows.indices = {csr.owner, csr.col_indices.narrow().data(), csr.col_indices.size()};
  }
  const Graph graph = cuda::graph_on(place, rows);
  if (options.row_order == RowOrder::checked) check_rows(graph, rows, place);
  const SharedArray<float> values(csr.owner, csr.values.data(), std::ssize(csr.values));
  return graph.with_values(cuda::placed(values, place));
}

}  // namespace tessera::detail
