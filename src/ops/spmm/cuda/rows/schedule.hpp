// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spmm/cuda/rows/cut.hpp"
#include "ops/spmm/cuda/rows/launch.hpp"

namespace tessera::ops {

/// Every row once: in a piece or several, for a warp, or for a team.
struct RowsSchedule {
  std::vector<LongPiece> pieces;
  std::vector<SplitRow> split_rows;
  std::int64_t num_slots = 0;
  std::vector<RowSlice> wide_rows;
  /// Empty unless the policy is listed: short rows are then all that no other list has.
  std::vector<RowSlice> short_rows;
};

RowsSchedule make_rows_schedule(std::span<const EdgeOffset> offsets, const RowsPolicy& policy,
                                const RowsCut& cut);

}  // namespace tessera::ops
