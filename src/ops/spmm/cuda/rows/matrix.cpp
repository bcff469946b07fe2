// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/matrix.hpp"

#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "ops/scales.hpp"

namespace tessera::ops {

DeviceMatrix::DeviceMatrix(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  const Place place = problem.place();
  const bool forward = problem.pass == SpmmPass::forward;
  const bool of_means = problem.reduction == Reduction::mean;
  const auto there = [&](const PlacedArray<float>& array) { return cuda::array_in(array, place); };
  using Of = detail::GraphAccess;
  rows_ = forward ? cuda::device_rows(graph, place) : cuda::device_columns(graph, place);
  values_ = there(Of::values(graph));
  row_scale_ = there(forward ? Of::row_scale(graph) : Of::col_scale(graph));
  if (forward) {
    col_scale_ = there(Of::col_scale(graph));
  } else if (of_means) {
    col_scale_ = there(mean_scale<float>(graph));
  } else {
    col_scale_ = there(Of::row_scale(graph));
  }
  mean_ = forward && of_means;
  sign_ = problem.reduction == Reduction::min ? -1.0f : 1.0f;
  features_ = problem.features;
}

RowsLaunch DeviceMatrix::launch(const SpmmCall& call) const {
  RowsLaunch launch;
  launch.num_rows = rows_->num_rows;
  launch.offsets = rows_->offsets();
  launch.indices = rows_->indices.data();
  if (call.edge_values.absent()) {
    launch.graph_values = values_.data();
  } else {
    launch.stored_values = call.edge_values.data;
    launch.value_stride = call.edge_values.stride;
  }
  launch.positions = rows_->positions.data();
  launch.col_scale = col_scale_.data();
  launch.row_scale = row_scale_.data();
  launch.mean = mean_;
  launch.sign = sign_;
  launch.x = call.x.data;
  launch.x_stride = call.x.stride;
  launch.y = call.y.data;
  launch.y_stride = call.y.stride;
  launch.features = features_;
  launch.winners = call.winners.data;
  launch.winners_stride = call.winners.stride;
  launch.won_by = call.won_by.data;
  launch.won_by_stride = call.won_by.stride;
  return launch;
}

}  // namespace tessera::ops
