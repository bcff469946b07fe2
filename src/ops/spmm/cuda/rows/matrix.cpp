// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/matrix.hpp"

#include <utility>

#include "cuda/array.hpp"
#include "cuda/select_rows.hpp"
#include "graph/access.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/weights.hpp"

namespace tessera::ops {

DeviceMatrix::DeviceMatrix(const SpmmProblem& problem) : problem_(problem) {
  const Graph& graph = problem.graph;
  const Place place = problem.place();
  const bool forward = problem.is_forward();
  rows_ = forward ? cuda::device_rows(graph, place) : cuda::device_columns(graph, place);
  values_ = cuda::array_in(detail::GraphAccess::values(graph), place);
  row_scale_ = cuda::array_in(row_scales(problem), place);
  col_scale_ = cuda::array_in(column_scales(problem), place);
  if (!forward && values_.size() > 0 && problem.own_weights_at_run && !problem.occasional) {
    Buffer<float> ordered(values_.size(), place);
    cuda::gather(values_.data(), rows_->positions.data(), values_.size(), ordered.data(),
                 place.stream);
    ordered_values_ = std::move(ordered);
  }
}

RowsLaunch DeviceMatrix::launch(const SpmmCall& call) const {
  RowsLaunch launch;
  launch.matrix.num_rows = rows_->num_rows;
  launch.matrix.offsets = rows_->offsets();
  launch.matrix.indices = rows_->indices.data();
  if (call.edge_values.absent() && ordered_values_.size() > 0) {
    launch.matrix.graph_values = ordered_values_.data();
  } else {
    launch.matrix.positions = rows_->positions.data();
    if (call.edge_values.absent()) {
      launch.matrix.graph_values = values_.data();
    } else {
      launch.matrix.stored_values = call.edge_values.data;
      launch.matrix.value_stride = call.edge_values.stride;
    }
  }
  launch.matrix.col_scale = col_scale_.data();
  launch.epilogue.row_scale = row_scale_.data();
  launch.epilogue.mean = problem_.divides();
  launch.matrix.sign = problem_.reduction == Reduction::min ? -1.0f : 1.0f;
  set_features(problem_, call, launch.features);
  launch.features.winners = call.winners.data;
  launch.features.winners_stride = call.winners.stride;
  launch.features.won_by = call.won_by.data;
  launch.features.won_by_stride = call.won_by.stride;
  return launch;
}

}  // namespace tessera::ops
