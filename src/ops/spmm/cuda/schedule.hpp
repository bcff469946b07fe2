// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spmm/cuda/rows.hpp"

namespace tessera::ops {

/// Which rows are long, and how they are cut.
struct RowsSchedule {
  EdgeOffset long_row = 0;
  std::vector<LongPiece> pieces;
  std::vector<SplitRow> split_rows;
  std::int64_t num_slots = 0;
};

/// How many steps of a policy's loop one team may take before a row counts as long: a quarter of
/// the time that the whole product should take, so that no row is still running when all others are
/// done.
int steps_before_cut(double gathered_bytes);

RowsSchedule make_rows_schedule(std::span<const EdgeOffset> offsets, const RowsPolicy& policy,
                                int max_steps);

}  // namespace tessera::ops
