// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/schedule.hpp"

#include <algorithm>

#include "graph/cut.hpp"

namespace tessera::ops {

PieceCounts count_pieces(std::span<const EdgeOffset> offsets, const DegreeStatistics& degrees,
                         const AttentionCut& cut) {
  PieceCounts counts;
  if (degrees.longest() <= cut.short_row) return counts;
  const bool any_cut = degrees.longest() > cut.longest_piece;
  const std::size_t num_rows = offsets.size() - 1;
  Cutter cutter;
  for (std::size_t first = 0; first < num_rows; first += piece_window_rows) {
    counts.starts.push_back({static_cast<std::int32_t>(counts.num_whole),
                             static_cast<std::int32_t>(cutter.num_slots()),
                             static_cast<std::int32_t>(counts.num_cut_rows)});
    const std::size_t end = std::min<std::size_t>(first + piece_window_rows, num_rows);
    const std::int32_t not_short = degrees.rows_beyond(
        cut.short_row, static_cast<std::int64_t>(first), static_cast<std::int64_t>(end));
    std::int32_t cut_rows = 0;
    for (std::size_t row = first; any_cut && row < end; ++row) {
      const EdgeOffset length = offsets[row + 1] - offsets[row];
      if (length <= cut.longest_piece) continue;
      cutter.cut(EqualParts::of_at_most(length, cut.longest_piece));
      ++cut_rows;
    }
    counts.num_whole += not_short - cut_rows;
    counts.num_cut_rows += static_cast<std::uint32_t>(cut_rows);
  }
  counts.num_slots = cutter.num_slots();
  return counts;
}

}  // namespace tessera::ops
