// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/schedule.hpp"

#include <algorithm>
#include <numeric>

#include "graph/cut.hpp"

namespace tessera::ops {
namespace {

/// Lists are ordered only among so many neighbours, which share sources that the cache then has.
constexpr VertexId window_rows = 4096;

/// Adds one window's rows, those of most steps first. Steps are few, so rows are counted, not
/// compared: mini-batches make a schedule for every step of training.
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

RowsSchedule make_rows_schedule(std::span<const EdgeOffset> offsets, const RowsPolicy& policy,
                                const RowsCut& cut) {
  RowsSchedule schedule;
  Cutter cutter;
  const EdgeOffset short_row = cut.short_row(policy);
  const EdgeOffset wide_row = std::max(short_row, cut.wide_row(policy));
  std::vector<RowSlice> wide_window, short_window;
  const auto num_rows = static_cast<VertexId>(offsets.size() - 1);
  for (VertexId row = 0; row < num_rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const EdgeOffset begin = offsets[at];
    const EdgeOffset length = offsets[at + 1] - begin;
    if (length > wide_row) {
      append_pieces(schedule, row, begin,
                    cutter.cut(EqualParts::of_at_most(length, cut.piece(policy))));
    } else if (length > short_row) {
      wide_window.push_back({begin, row, static_cast<std::int32_t>(length)});
    } else if (policy.listed) {
      short_window.push_back({begin, row, static_cast<std::int32_t>(length)});
    }

    if ((row + 1) % window_rows == 0 || row + 1 == num_rows) {
      append_ordered(schedule.wide_rows, wide_window, whole_warp(policy).step());
      append_ordered(schedule.short_rows, short_window, policy.step());
    }
  }
  schedule.num_slots = cutter.num_slots();
  return schedule;
}

}  // namespace tessera::ops
