// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/cuda/rows/launch.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The matrix of a problem on its GPU: A, or A^T in the backward pass, with its weights.
class DeviceMatrix {
 public:
  explicit DeviceMatrix(const SpmmProblem& problem);

  const cuda::DeviceRows& rows() const noexcept { return *rows_; }
  bool weighted() const noexcept { return values_.size() > 0 || col_scale_.size() > 0; }
  bool row_scaled() const noexcept { return row_scale_.size() > 0 || mean_; }

  /// Matrix and operands of a launch, without a schedule.
  RowsLaunch launch(const SpmmCall& call) const;

 private:
  std::shared_ptr<const cuda::DeviceRows> rows_;
  SharedArray<float> values_;  ///< the graph's own where it lies on the GPU
  /// Of A^T: the same in the order of its rows, so that no edge has to look up its place.
  SharedArray<float> ordered_values_;
  SharedArray<float> row_scale_;
  SharedArray<float> col_scale_;
  bool mean_ = false;
  float sign_ = 1;
  std::int64_t features_ = 0;
};

}  // namespace tessera::ops
