// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cuda/sums.cuh"
#include "tessera/core/error.hpp"

namespace tessera::ops {

/// The numbers of the columns lie in the stream's workspace between two passes.
inline void require_columns(std::int64_t cols) {
  if (cols <= cuda::workspace_columns) return;
  throw Error(ErrorCode::unsupported, std::to_string(cols) + " columns", "batch_norm",
              "use at most " + std::to_string(cuda::workspace_columns) + " on a GPU");
}

}  // namespace tessera::ops
