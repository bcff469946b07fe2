// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

namespace tessera::ops {

/// How a row's edges and features are shared among the 32 lanes of a warp.
///
/// A lane loads `bytes` bytes of a row of X at once (or one feature, RowStarts below), `vectors`
/// times; `lanes` neighbouring lanes load one edge's row together; `edges`
/// such groups work on different edges of one target. lanes * edges lanes are a team; a warp holds
/// 32 / team teams, each with a target of its own.
///
///     lanes = 8, edges = 2:   | edge 0 | edge 1 | edge 0 | edge 1 |     two targets per warp
struct RowsPolicy {
  int lanes = 32;
  int edges = 1;
  int unroll = 4;           ///< edges in flight for each lane
  bool shared_ids = false;  ///< a warp loads 32 column ids at once and passes them round
  int bytes = 16;           ///< 8: as many lanes for 16-bit features as for fp32
  int vectors = 1;          ///< loads of a lane for each edge, `lanes` vectors apart
  /// Short rows come from a list: by their steps, and with their first column ids. The same kernel.
  bool listed = false;

  friend constexpr bool operator==(const RowsPolicy&, const RowsPolicy&) = default;

  constexpr int team() const { return lanes * edges; }
  /// Targets of a warp.
  constexpr int teams() const { return 32 / team(); }
  /// Edges a team takes in one step of its loop.
  constexpr int step() const { return edges * unroll; }
  constexpr bool valid() const {
    const bool powers = (lanes & (lanes - 1)) == 0 && (edges & (edges - 1)) == 0;
    return powers && lanes >= 1 && edges >= 1 && team() <= 32 && unroll >= 1 &&
           (bytes == 16 || bytes == 8) && (vectors == 1 || vectors == 2) &&
           (!listed || takes_starts()) && (!shared_ids || (team() == 32 && 32 % step() == 0));
  }
  /// Whether a lane's first column ids are those of its row.
  constexpr bool takes_starts() const { return edges == 1 && unroll == 4; }
};

/// The same lanes with as many edges at once as a warp holds: what rows beyond a team want.
constexpr RowsPolicy whole_warp(RowsPolicy policy) {
  policy.edges = 32 / policy.lanes;
  return policy;
}

/// Where rows begin.
enum class RowStarts {
  boundaries,  ///< those of X and Y on boundaries of a policy's loads, which they fill
  units,       ///< those of X, which fill units of 16 bytes with anything; those of Y anywhere
  anywhere,    ///< both: X is loaded in two blocks for each vector (cuda/any_start.cuh)
  elements,    ///< both, and a lane takes one feature: rows of few of them, and max and min
};

/// What of a policy makes its kernel another one.
constexpr RowsPolicy kernel_of(RowsPolicy policy, RowStarts starts) {
  policy.listed = false;
  if (starts == RowStarts::boundaries) return policy;
  policy.bytes = 16;
  policy.vectors = 1;
  if (starts == RowStarts::anywhere) policy.unroll = 4;
  return policy;
}

/// Lanes of 8 bytes are for 16-bit features.
constexpr bool takes(const RowsPolicy& policy, int feature_bytes) {
  return policy.bytes == 16 || feature_bytes == 2;
}

inline constexpr int max_rows_block_threads = 256;

/// Low degrees want many targets per warp, high ones many edges; deep unrolling pays where rows are
/// long, two vectors per lane where they are short and wide, lanes of 8 bytes where 16-bit rows are
/// narrow. Others were measured and never the fastest.
inline constexpr std::array<RowsPolicy, 24> rows_policies = {{
    {1, 1, 4, false},
    {1, 1, 4, false, 16, 1, true},
    {1, 32, 4, false},
    {2, 1, 4, false},
    {2, 1, 4, false, 16, 1, true},
    {2, 16, 4, false},
    {4, 1, 4, false},
    {4, 1, 4, false, 16, 1, true},
    {4, 8, 4, false},
    {8, 1, 4, false},
    {8, 1, 4, false, 16, 1, true},
    {8, 4, 8, true},
    {16, 1, 4, false},
    {16, 1, 4, false, 16, 1, true},
    {32, 1, 4, false},
    {32, 1, 4, false, 16, 1, true},
    {4, 1, 4, false, 16, 2},
    {4, 1, 4, false, 16, 2, true},
    {8, 1, 4, false, 16, 2},
    {8, 1, 4, false, 16, 2, true},
    {16, 1, 4, false, 16, 2},
    {16, 1, 4, false, 16, 2, true},
    {4, 1, 4, false, 8},
    {4, 1, 4, false, 8, 1, true},
}};

/// For max and min and their gradient, which keep or read two words per element: one for each
/// width.
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
