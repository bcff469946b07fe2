// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// How the CPU goes over the features.
struct FeatureTiles {
  /// Features computed at a time, for all rows, before the next ones.
  std::int64_t width = 0;
  /// Copies these columns of x side by side first: a slice that fits the caches is then gathered
  /// from them, where rows of the whole x would not.
  bool packed = false;
};

/// spmm row by row on the CPU: over the CSR arrays, or for a backward pass over the CSC arrays.
std::unique_ptr<const PreparedSpmm> prepare_spmm_by_rows(const SpmmProblem& problem,
                                                         FeatureTiles tiles);

}  // namespace tessera::ops
