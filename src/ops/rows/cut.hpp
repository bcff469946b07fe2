// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "core/device_traits.hpp"
#include "graph/degrees.hpp"
#include "ops/rows/policy.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops {

/// Which rows go to teams, which to whole warps, and which are cut into pieces for blocks.
struct RowsCut {
  int short_steps = 0;  ///< of a team's loop; the teams of some policies are whole warps
  int wide_steps = 0;   ///< of a warp's loop
  int block_threads = 128;

  EdgeOffset short_row(const RowsPolicy& policy) const {
    return EdgeOffset{policy.team() == 32 ? wide_steps : short_steps} * policy.step();
  }
  EdgeOffset wide_row(const RowsPolicy& policy) const {
    return EdgeOffset{wide_steps} * whole_warp(policy).step();
  }
  /// A warp's rows are none that teams take.
  EdgeOffset longest_wide_row(const RowsPolicy& policy) const {
    return std::max(short_row(policy), wide_row(policy));
  }
  /// Steps that the longest row may still take when all others are done. Wide rows begin first, so
  /// that the others hide half of theirs.
  double waited_steps() const { return std::max<double>(short_steps, wide_steps / 2.0); }
  /// Edges of a piece, at most.
  EdgeOffset piece(const RowsPolicy& policy) const;
};

/// What the warps of a launch do. Teams of a warp wait for the longest of their rows, so a warp
/// takes the steps of that one; lists are in an order that makes them equal.
struct RowsWork {
  double warps = 0;
  double steps = 0;
};

/// Warps that a processor holds at once, by the registers that kernels of a policy take.
double resident_warps(const RowsPolicy& policy);

/// Rows as they follow each other, and how many of them have each degree. They may be some of a
/// matrix: then offsets and degrees are those of a matrix that has no others.
struct RowLengths {
  std::span<const EdgeOffset> offsets;
  const DegreeStatistics& degrees;
  std::span<const VertexId> ids = {};  ///< which rows they are; empty: all of the matrix
  std::span<const EdgeOffset> matrix_offsets = {};  ///< of all rows, where these are some

  VertexId row(std::int64_t i) const {
    return ids.empty() ? static_cast<VertexId>(i) : ids[static_cast<std::size_t>(i)];
  }
  /// Where its edges begin in the matrix.
  EdgeOffset begin(std::int64_t i) const {
    return ids.empty() ? offsets[static_cast<std::size_t>(i)]
                       : matrix_offsets[static_cast<std::size_t>(row(i))];
  }
};

/// The cut that should be fastest. A few rows of many steps would still run when all others are
/// done; many rows that are shared by several warps keep those from other rows.
RowsCut choose_cut(const RowLengths& rows, const RowsPolicy& policy, double blocks_of_features,
                   const DeviceTraits& traits);

/// What a cut makes of the rows, as if they were in the order of their degrees.
RowsWork work_of(const RowLengths& rows, const RowsPolicy& policy, const RowsCut& cut);

}  // namespace tessera::ops
