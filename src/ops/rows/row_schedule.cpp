// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/row_schedule.hpp"

#include <algorithm>

#include "graph/cut.hpp"

namespace tessera::ops {
namespace {

void append_long_row(RowSchedule& schedule, VertexId row, EdgeOffset begin, const Cut& cut) {
  schedule.long_rows.push_back({row, cut.first_slot(), cut.num_slots()});
  cut.for_parts([&](const CutPart& part) {
    schedule.ranges.push_back({row, row + 1, begin + part.begin, begin + part.end, part.slot});
  });
}

}  // namespace

RowSchedule make_row_schedule(VertexId num_rows, const EdgeOffset* row_offsets) {
  RowSchedule schedule;
  Cutter cutter;
  VertexId row = 0;
  while (row < num_rows) {
    const EdgeOffset begin = row_offsets[row];
    const EdgeOffset length = row_offsets[row + 1] - begin;
    if (length > max_edges_per_range) {
      append_long_row(schedule, row, begin,
                      cutter.cut(EqualParts::of_at_most(length, max_edges_per_range)));
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
  schedule.num_slots = cutter.num_slots();
  return schedule;
}

}  // namespace tessera::ops
