// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/rows/launch.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The matrix of a problem on its GPU: A, or A^T in the backward pass, with its weights.
class DeviceMatrix {
 public:
  explicit DeviceMatrix(const SpmmProblem& problem);

  const cuda::DeviceRows& rows() const noexcept { return *rows_; }

  /// Matrix and operands of a launch, without a schedule.
  RowsLaunch launch(const SpmmCall& call) const;

 private:
  SpmmProblem problem_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  SharedArray<float> values_;  ///< the graph's own where it lies on the GPU
  /// Of A^T: the same in the order of its rows, so that no edge has to look up its place.
  SharedArray<float> ordered_values_;
  SharedArray<float> row_scale_;
  SharedArray<float> col_scale_;
};

}  // namespace tessera::ops
