// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/schedule.hpp"

#include <algorithm>
#include <numeric>

#include "graph/cut.hpp"

namespace tessera::ops {
namespace {

/// Adds one window's rows, those of most steps first. Steps are few, so rows are counted, not
/// compared.
void append_ordered(std::vector<RowSlice>& list, std::vector<RowSlice>& window, int step) {
  const auto steps_of = [step](const RowSlice& slice) {
    return static_cast<std::size_t>((slice.count + step - 1) / step);
  };
  std::size_t most = 0;
  for (const RowSlice& slice : window) most = std::max(most, steps_of(slice));
  std::vector<std::size_t> places(most + 2);  // by how many steps fewer than the most
  for (const RowSlice& slice : window) ++places[most - steps_of(slice) + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  const std::size_t first = list.size();
  list.resize(first + window.size());
  for (const RowSlice& slice : window) list[first + places[most - steps_of(slice)]++] = slice;
  window.clear();
}

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
  const std::size_t num_rows = offsets.size() - 1;
  RowsSchedule schedule;
  const EdgeOffset short_row = cut.short_row(policy);
  if (rows.degrees.longest() <= short_row) {
    if (policy.listed) schedule.num_short = static_cast<std::int64_t>(num_rows);
    return schedule;
  }
  Cutter cutter;
  const EdgeOffset wide_row = std::max(short_row, cut.wide_row(policy));
  std::vector<RowSlice> wide_window;
  std::int64_t num_short = 0;
  for (std::size_t first = 0; first < num_rows; first += list_window_rows) {
    const std::size_t end = std::min<std::size_t>(first + list_window_rows, num_rows);
    if (policy.listed) schedule.short_firsts.push_back(static_cast<std::int32_t>(num_short));
    num_short += static_cast<std::int64_t>(end - first);
    for (std::size_t row = first; row < end; ++row) {
      const EdgeOffset begin = offsets[row];
      const EdgeOffset length = offsets[row + 1] - begin;
      if (length <= short_row) continue;
      --num_short;
      const auto id = static_cast<VertexId>(row);
      if (length <= wide_row) {
        wide_window.push_back({begin, id, static_cast<std::int32_t>(length)});
      } else {
        append_pieces(schedule, id, begin,
                      cutter.cut(EqualParts::of_at_most(length, cut.piece(policy))));
      }
    }
    append_ordered(schedule.wide_rows, wide_window, whole_warp(policy).step());
  }
  if (policy.listed) schedule.num_short = num_short;
  schedule.num_slots = cutter.num_slots();
  return schedule;
}

}  // namespace tessera::ops
