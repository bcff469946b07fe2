// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace tessera::ops {

/// How a row's edges and features are shared among the 32 lanes of a warp.
///
/// A lane loads 16 bytes of a row of X at once (one feature where rows are not on 16-byte
/// boundaries); `lanes` neighbouring lanes load one edge's row together; `edges` such groups work
/// on different edges of one target. lanes * edges lanes are a team; a warp holds 32 / team teams,
/// each with a target of its own.
///
///     lanes = 8, edges = 2:   | edge 0 | edge 1 | edge 0 | edge 1 |     two targets a warp
struct RowsPolicy {
  int lanes = 32;
  int edges = 1;
  int unroll = 4;           ///< loads in flight for each lane
  bool shared_ids = false;  ///< a warp loads 32 column ids at once and passes them round

  constexpr int team() const { return lanes * edges; }
  /// Edges a team takes in one step of its loop.
  constexpr int step() const { return edges * unroll; }
  constexpr bool valid() const {
    const bool powers = (lanes & (lanes - 1)) == 0 && (edges & (edges - 1)) == 0;
    return powers && lanes >= 1 && edges >= 1 && team() <= 32 && unroll >= 1 &&
           (!shared_ids || (team() == 32 && 32 % step() == 0));
  }
};

inline constexpr int rows_block_threads = 128;
inline constexpr int rows_block_warps = rows_block_threads / 32;

/// Low degrees want many targets a warp, high ones many edges; deep unrolling pays where rows are
/// long.
inline constexpr std::array<RowsPolicy, 18> rows_policies = {{
    {1, 1, 4, false},
    {1, 8, 4, false},
    {1, 32, 4, false},
    {2, 1, 4, false},
    {2, 4, 4, false},
    {2, 16, 4, false},
    {4, 1, 4, false},
    {4, 4, 4, false},
    {4, 8, 4, false},
    {8, 1, 4, false},
    {8, 4, 4, false},
    {8, 4, 8, true},
    {16, 1, 4, false},
    {16, 2, 4, false},
    {16, 2, 8, true},
    {32, 1, 4, false},
    {32, 1, 8, false},
    {32, 1, 8, true},
}};

/// For max and min and their gradient, which keep or read two words an element: one for each width.
inline constexpr std::array<RowsPolicy, 6> best_policies = {{
    {1, 8, 4, false},
    {2, 4, 4, false},
    {4, 4, 4, false},
    {8, 2, 4, false},
    {16, 1, 4, false},
    {32, 1, 4, false},
}};

constexpr bool all_valid(auto& policies) {
  for (const RowsPolicy& policy : policies) {
    if (!policy.valid()) return false;
  }
  return true;
}
static_assert(all_valid(rows_policies) && all_valid(best_policies));

}  // namespace tessera::ops
