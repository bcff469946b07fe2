// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/rows/launch.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// Rows, whose matrix and X are those of the forward pass, and what the gradient of edge values
/// under max or min has besides; strides in elements.
struct WinnerGradientsLaunch {
  RowsLaunch rows;
  EdgeOffset num_edges = 0;
  const void* grad_y = nullptr;
  std::int64_t grad_y_stride = 0;
  const VertexId* winners = nullptr;
  std::int64_t winners_stride = 0;
  void* result = nullptr;
  std::int64_t result_stride = 0;
};

void launch_winner_gradients(const WinnerGradientsLaunch& launch, Precision precision,
                             Stream stream);

}  // namespace tessera::ops
