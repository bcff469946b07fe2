// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  int unroll = 4;   ///< edges in flight for each lane
  int bytes = 16;   ///< 8: as many lanes for 16-bit features as for fp32
  int vectors = 1;  ///< loads of a lane for each edge, `lanes` vectors apart
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
           (!listed || takes_starts());
  }
  /// Whether a lane's first column ids are those of its row.
  constexpr bool takes_starts() const { return edges == 1 && unroll == 4; }
  /// Whether the teams of a warp may take parts of one row beside each other.
  constexpr bool takes_parts_beside() const { return edges == 1 && vectors == 1 && teams() == 2; }
};

/// What a policy does whose teams take parts of one row beside each other: teams of whole warps.
constexpr RowsPolicy with_parts_beside(RowsPolicy policy) {
  policy.lanes = 32;
  return policy;
}

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
  return policy;
}

/// Lanes of 8 bytes are for 16-bit features.
constexpr bool takes(const RowsPolicy& policy, int feature_bytes) {
  return policy.bytes == 16 || feature_bytes == 2;
}

inline constexpr int max_rows_block_threads = 256;

}  // namespace tessera::ops
