// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spmm/cuda/rows/cut.hpp"
#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// Lists are ordered only among so many neighbours, which share sources that the cache then has.
inline constexpr VertexId list_window_rows = 4096;
/// Where neighbours share more, among so many of them, a divisor of the above: rows of about the
/// same length are then a little farther from equal, and sources are in the cache more often.
inline constexpr VertexId near_list_rows = 512;

/// How many rows of each list stand before a window of neighbours.
struct ListStart {
  std::int32_t short_row = 0;
  std::int32_t wide_row = 0;
};

/// Every one of the rows once: in a piece or several, for a warp, or for a team. The lists of short
/// and of wide rows are made where they are used, on the GPU (row_lists.hpp): here they are
/// counted.
struct RowsSchedule {
  std::vector<LongPiece> pieces;
  std::vector<SplitRow> split_rows;
  std::int64_t num_slots = 0;
  /// Sizes of lists. Short rows have one if the policy is listed: all that are in no other.
  std::int64_t num_wide = 0;
  std::int64_t num_short = 0;
  /// For each window, and behind the last; empty where all rows are short.
  std::vector<ListStart> starts;
};

RowsSchedule make_rows_schedule(const RowLengths& rows, const RowsPolicy& policy,
                                const RowsCut& cut);

}  // namespace tessera::ops
