// SPDX-License-Identifier: Apache-2.0
#include "ops/row_schedule.hpp"

#include <algorithm>

namespace tessera::ops {
namespace {

void split_long_row(RowSchedule& schedule, VertexId row, EdgeOffset begin, EdgeOffset end) {
  LongRow& long_row = schedule.long_rows.emplace_back(LongRow{row, schedule.num_slots, 0});
  for (EdgeOffset edge = begin; edge < end; edge += max_edges_per_range) {
    schedule.ranges.push_back(
        {row, row + 1, edge, std::min(edge + max_edges_per_range, end), schedule.num_slots++});
    ++long_row.num_slots;
  }
}

}  // namespace

RowSchedule make_row_schedule(VertexId num_rows, const EdgeOffset* row_offsets) {
  RowSchedule schedule;
  VertexId row = 0;
  while (row < num_rows) {
    const EdgeOffset begin = row_offsets[row];
    if (row_offsets[row + 1] - begin > max_edges_per_range) {
      split_long_row(schedule, row, begin, row_offsets[row + 1]);
      ++row;
      continue;
    }
    // The last row whose end is within reach; at least this one.
    const VertexId limit =
        num_rows - row < max_rows_per_range ? num_rows : row + max_rows_per_range;
    const EdgeOffset* const past = std::upper_bound(row_offsets + row + 1, row_offsets + limit + 1,
                                                    begin + max_edges_per_range);
    const auto row_end = static_cast<VertexId>(past - row_offsets) - 1;
    schedule.ranges.push_back({row, row_end, begin, row_offsets[row_end], -1});
    row = row_end;
  }
  return schedule;
}

}  // namespace tessera::ops
