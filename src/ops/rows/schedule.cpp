// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/row_lists.hpp"

#include <algorithm>

#include "graph/cut.hpp"

namespace tessera::ops {
namespace {

void append_pieces(RowsSchedule& schedule, VertexId row, EdgeOffset begin, const Cut& cut) {
  const auto split_row =
      cut.is_whole() ? -1 : static_cast<std::int32_t>(schedule.split_rows.size());
  if (!cut.is_whole()) schedule.split_rows.push_back({cut.first_slot(), cut.num_slots()});
  cut.for_parts([&](const CutPart& part) {
    schedule.pieces.push_back({row, split_row, part.slot, begin + part.begin, begin + part.end});
  });
}

}  // namespace

RowsSchedule make_rows_schedule(const RowLengths& rows, const RowsPolicy& policy,
                                const RowsCut& cut) {
  const std::span<const EdgeOffset> offsets = rows.offsets;
  const auto num_rows = static_cast<std::int64_t>(offsets.size()) - 1;
  RowsSchedule schedule;
  const EdgeOffset short_row = cut.short_row(policy);
  if (rows.degrees.longest() <= short_row) {
    if (policy.listed) schedule.num_short = num_rows;
    return schedule;
  }
  const EdgeOffset wide_row = cut.longest_wide_row(policy);
  const bool any_long = rows.degrees.longest() > wide_row;
  Cutter cutter;
  std::int64_t num_short = 0;
  const auto add_start = [&] {
    schedule.starts.push_back({policy.listed ? static_cast<std::int32_t>(num_short) : 0,
                               static_cast<std::int32_t>(schedule.num_wide)});
  };
  for (std::int64_t first = 0; first < num_rows; first += list_window_rows) {
    add_start();
    const std::int64_t end = std::min<std::int64_t>(first + list_window_rows, num_rows);
    const std::int64_t not_short = rows.degrees.rows_beyond(short_row, first, end);
    num_short += end - first - not_short;
    schedule.num_wide +=
        not_short - (any_long ? rows.degrees.rows_beyond(wide_row, first, end) : 0);
    for (std::int64_t row = first; any_long && row < end; ++row) {
      const EdgeOffset begin = offsets[static_cast<std::size_t>(row)];
      const EdgeOffset length = offsets[static_cast<std::size_t>(row) + 1] - begin;
      if (length <= wide_row) continue;
      append_pieces(schedule, rows.row(row), rows.begin(row),
                    cutter.cut(EqualParts::of_at_most(length, cut.piece(policy))));
    }
  }
  add_start();
  if (policy.listed) schedule.num_short = num_short;
  schedule.num_slots = cutter.num_slots();
  return schedule;
}

}  // namespace tessera::ops
