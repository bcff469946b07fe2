// SPDX-License-Identifier: Apache-2.0
#include "cuda/coo.hpp"

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "cuda/edge_arrays.hpp"
#include "graph/coo_access.hpp"
#include "graph/narrow_indices.hpp"

/// Edges in no order on a GPU.
namespace tessera::detail {

using cuda_backend::CurrentDevice;

void check_range_on_device(VertexId num_rows, VertexId num_cols, std::span<const VertexId> rows,
                           std::span<const VertexId> cols, const Place& place) {
  const CurrentDevice current(place.device.index);
  cuda::GivenEdges edges;
  edges.rows = rows.data();
  edges.cols = cols.data();
  edges.count = std::ssize(rows);
  edges.num_rows = num_rows;
  edges.num_cols = num_cols;
  const EdgeOffset bad = cuda::first_out_of_range(edges, place);
  if (bad == cuda::no_edge) return;
  const VertexId row = cuda::value_at(rows.data() + bad, place);
  const VertexId col = cuda::value_at(cols.data() + bad, place);
  const bool row_is_bad = row < 0 || row >= num_rows;
  report_out_of_range(row_is_bad ? "row" : "column", row_is_bad ? row : col,
                      row_is_bad ? num_rows : num_cols, bad);
}

Buffer<float> weighed_on_device(const Coo& coo) {
  const Place& place = coo.place();
  const CurrentDevice current(place.device.index);
  const SharedArray<VertexId> rows = CooAccess::rows(coo).there(place.stream);
  const SharedArray<VertexId> cols = CooAccess::cols(coo).there(place.stream);
  const SharedArray<float> values = CooAccess::values(coo).there(place.stream);
  const SharedArray<float> row_numbers = cuda::array_in(CooAccess::row_numbers(coo), place);
  const SharedArray<float> col_numbers = cuda::array_in(CooAccess::col_numbers(coo), place);
  Buffer<float> weights(coo.num_edges(), place);
  cuda::weigh_edges({rows.data(), cols.data(), coo.num_edges(), values.data(), row_numbers.data(),
                     col_numbers.data()},
                    coo.function(), weights.data(), place.stream);
  return weights;
}

PlacedArray<VertexId> placed_on_device(SharedArray<VertexId> values, const Place& place) {
  return cuda::placed(std::move(values), place);
}

PlacedArray<float> placed_on_device(SharedArray<float> values, const Place& place) {
  return cuda::placed(std::move(values), place);
}

}  // namespace tessera::detail
