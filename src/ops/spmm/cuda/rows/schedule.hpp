// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spmm/cuda/rows/cut.hpp"
#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// Lists are ordered only among so many neighbours, which share sources that the cache then has.
inline constexpr VertexId list_window_rows = 4096;

/// Every row once: in a piece or several, for a warp, or for a team. The list of short rows is made
/// where it is used, on the GPU (short_rows.hpp).
struct RowsSchedule {
  std::vector<LongPiece> pieces;
  std::vector<SplitRow> split_rows;
  std::int64_t num_slots = 0;
  std::vector<RowSlice> wide_rows;
  /// Of the list: 0 unless the policy is listed. Short rows are all that no other list has.
  std::int64_t num_short = 0;
  /// How many of them stand before each window of neighbours; empty where all rows are short.
  std::vector<std::int32_t> short_firsts;
};

RowsSchedule make_rows_schedule(const RowLengths& rows, const RowsPolicy& policy,
                                const RowsCut& cut);

}  // namespace tessera::ops
