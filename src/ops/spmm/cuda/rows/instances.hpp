// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// What becomes of the rows that a target gathers.
enum class RowsReduction {
  pattern_sum,   ///< edges have no weights
  weighted_sum,  ///< weights that are not there are 1
  best,          ///< max and min
  winner_sum,    ///< the gradient of max and min with respect to X
};

constexpr bool of_winners(RowsReduction reduction) {
  return reduction == RowsReduction::best || reduction == RowsReduction::winner_sum;
}

/// What sets kernels apart. Rows of X and Y lie on the boundaries of a policy's loads if `aligned`.
struct RowsKey {
  Precision precision = Precision::fp32;
  bool aligned = true;
  RowsReduction reduction = RowsReduction::weighted_sum;
  bool epilogue = false;

  friend constexpr bool operator==(const RowsKey&, const RowsKey&) = default;
};

/// Whether there are kernels. Where rows lie anywhere, an epilogue takes sums as if they had
/// weights; gradients end with none.
constexpr bool is_compiled(const RowsKey& key) {
  if (!key.epilogue) return true;
  if (key.reduction == RowsReduction::pattern_sum) return key.aligned;
  return key.reduction != RowsReduction::winner_sum;
}

/// One for each of `rows_policies`, or of `best_policies`. Compiled in units of their own (inst/).
template <RowsKey key>
struct RowsKernels {
  static_assert(is_compiled(key));
  static std::span<const RowsFunction> all();
};

}  // namespace tessera::ops
