// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// Matrix, operands and result of one gradient of edge values under max or min; strides in
/// elements.
struct WinnerGradientsLaunch {
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;
  VertexId num_rows = 0;
  EdgeOffset num_edges = 0;
  const float* row_scale = nullptr;
  const float* col_scale = nullptr;
  std::int64_t features = 0;
  const void* grad_y = nullptr;
  std::int64_t grad_y_stride = 0;
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  const VertexId* winners = nullptr;
  std::int64_t winners_stride = 0;
  void* result = nullptr;
  std::int64_t result_stride = 0;
};

void launch_winner_gradients(const WinnerGradientsLaunch& launch, Precision precision,
                             Stream stream);

}  // namespace tessera::ops
