// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "ops/rows/launch.hpp"
#include "ops/rows/policy.hpp"

namespace tessera::ops {

/// By the width of rows: two vectors per lane where they are short and wide, lanes of 8 bytes where
/// 16-bit rows are narrow.
inline constexpr std::array<RowsPolicy, 9> rows_policies = {{
    {1, 1, 4, 16, 1, true},
    {2, 1, 4, 16, 1, true},
    {4, 1, 4, 16, 1, true},
    {8, 1, 4, 16, 1, true},
    {16, 1, 4, 16, 1, true},
    {4, 1, 4, 16, 2, true},
    {8, 1, 4, 16, 2, true},
    {16, 1, 4, 16, 2, true},
    {4, 1, 4, 8, 1, true},
}};

/// For max and min and their gradient, which keep or read two words per element: one for each
/// width, the last for wider rows as well.
inline constexpr std::array<RowsPolicy, 5> best_policies = {{
    {1, 8, 4},
    {2, 4, 4},
    {4, 4, 4},
    {8, 2, 4},
    {16, 1, 4, 16, 1, true},
}};

static_assert(std::ranges::all_of(rows_policies, &RowsPolicy::valid) &&
              std::ranges::all_of(best_policies, &RowsPolicy::valid));

/// What becomes of the rows that a target gathers.
enum class RowsReduction {
  pattern_sum,         ///< edges have no weights
  weighted_sum,        ///< weights that are not there are 1
  pattern_best,        ///< max and min, likewise
  best,                ///< with weights of edges, and of rows
  pattern_winner_sum,  ///< the gradient of max and min with respect to X
  winner_sum,
};

constexpr bool of_winners(RowsReduction reduction) {
  return reduction != RowsReduction::pattern_sum && reduction != RowsReduction::weighted_sum;
}
constexpr bool of_patterns(RowsReduction reduction) {
  return reduction == RowsReduction::pattern_sum || reduction == RowsReduction::pattern_best ||
         reduction == RowsReduction::pattern_winner_sum;
}

/// What sets kernels apart.
struct RowsKey {
  Precision precision = Precision::fp32;
  RowStarts starts = RowStarts::boundaries;
  RowsReduction reduction = RowsReduction::weighted_sum;
  bool epilogue = false;

  friend constexpr bool operator==(const RowsKey&, const RowsKey&) = default;
};

/// Whether there are kernels. Where rows lie anywhere, an epilogue takes sums as if they had
/// weights; gradients end with none. An epilogue looks itself how it may store. Max and min have
/// more than numbers to load and store: vectors of them are for rows on boundaries, and kernels
/// without weights for those without an epilogue, too.
constexpr bool is_compiled(const RowsKey& key) {
  if (key.starts == RowStarts::units && key.epilogue) return false;
  if (of_winners(key.reduction) && key.starts != RowStarts::boundaries &&
      key.starts != RowStarts::elements) {
    return false;
  }
  if (of_winners(key.reduction) && of_patterns(key.reduction)) {
    return key.starts == RowStarts::boundaries && !key.epilogue;
  }
  if (!key.epilogue) return true;
  if (key.reduction == RowsReduction::pattern_sum) return key.starts == RowStarts::boundaries;
  return key.reduction != RowsReduction::winner_sum;
}

/// One for each of `rows_policies`, or of `best_policies`. Compiled in units of their own (inst/).
template <RowsKey key>
struct RowsKernels {
  static_assert(is_compiled(key));
  static std::span<const RowsFunction> get();
};

}  // namespace tessera::ops
