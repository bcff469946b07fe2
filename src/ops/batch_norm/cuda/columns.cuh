// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ops/batch_norm/cuda/forward.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/dense_ops.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {

/// The numbers of the columns lie in the stream's workspace between two passes.
inline void require_columns(std::int64_t cols) {
  if (cols <= cuda::workspace_columns) return;
  throw Error(ErrorCode::unsupported, std::to_string(cols) + " columns", "batch_norm",
              "use at most " + std::to_string(cuda::workspace_columns) + " on a GPU");
}

template <class T>
Statistics<T> statistics_of(const BatchNormCall& call, cuda::ColumnNumbers* columns) {
  return {values_of<float>(call.gamma),
          values_of<float>(call.beta),
          values_of<T>(call.shift),
          values_of<float>(call.state.running_mean),
          values_of<float>(call.state.running_variance),
          values_of<float>(call.saved_mean),
          values_of<float>(call.saved_inverse_deviation),
          call.options.epsilon,
          call.options.momentum,
          call.x.rows,
          columns};
}

}  // namespace tessera::ops
