// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/matrix.hpp"

#include <utility>

#include "cuda/array.hpp"
#include "cuda/select_rows.hpp"
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
  launch.epilogue.mean = mean_;
  launch.matrix.sign = sign_;
  launch.features.x = call.x.data;
  launch.features.x_stride = call.x.stride;
  launch.features.y = call.y.data;
  launch.features.y_stride = call.y.stride;
  launch.features.count = features_;
  launch.features.winners = call.winners.data;
  launch.features.winners_stride = call.winners.stride;
  launch.features.won_by = call.won_by.data;
  launch.features.won_by_stride = call.won_by.stride;
  return launch;
}

}  // namespace tessera::ops
