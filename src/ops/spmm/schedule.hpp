// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/spmm/rows.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// A row too long for one range: its partial results are `num_slots` consecutive slots.
struct LongRow {
  VertexId row = 0;
  std::int64_t first_slot = 0;
  std::int64_t num_slots = 0;
};

/// Rows cut into ranges of about equal work. The cut depends on the graph alone, so results have
/// the same bits for any number of threads.
struct RowSchedule {
  std::vector<RowRange> ranges;
  std::vector<LongRow> long_rows;
  std::int64_t num_slots = 0;
};

RowSchedule make_row_schedule(VertexId num_rows, const EdgeOffset* row_offsets);

}  // namespace tessera::ops
