// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/row_side.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/device_traits.hpp"
#include "graph/cut.hpp"
#include "ops/rows/cut.hpp"

namespace tessera::ops {
namespace {

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

/// Pieces of rows that are cut, of so many edges at most.
std::int64_t count_slots(const DegreeStatistics& degrees, EdgeOffset piece) {
  std::int64_t slots = 0;
  for (auto count = degrees.counts.rbegin(); count != degrees.counts.rend(); ++count) {
    if (count->degree <= piece) break;
    slots += count->rows * ((count->degree + piece - 1) / piece);
  }
  return slots;
}

}  // namespace

AttentionSchedule make_attention_schedule(const cuda::DeviceRows& rows,
                                          const DegreeStatistics& degrees, const AttentionCut& cut,
                                          const Place& place) {
  const PieceCounts counts = count_pieces(rows.host_offsets.span(), degrees, cut);
  return {list_pieces(rows, counts, cut, place), cut.short_row, counts.num_slots,
          counts.num_cut_rows};
}

AttentionSide::AttentionSide(std::shared_ptr<const cuda::DeviceRows> matrix,
                             const DegreeStatistics& degrees, const LaneShape& shape,
                             const AttentionOptions& options)
    : rows(std::move(matrix)) {
  RowsPolicy policy;
  policy.lanes = shape.lanes;
  const auto offsets = rows->host_offsets.span();
  const RowsCut cut =
      choose_cut({offsets, degrees}, policy, shape.num_slices, device_traits(options.device));
  // A warp's share of spmm's piece. What pieces leave for others to join, features and as many
  // numbers of scores at most, is less than a number for two edges of the graph.
  EdgeOffset piece = std::max<EdgeOffset>(1, cut.piece(policy) / (cut.block_threads / 32));
  while (count_slots(degrees, piece) * 2 * options.features > degrees.num_edges / 2) piece *= 2;
  schedule = make_attention_schedule(
      *rows, degrees, {std::min(cut.short_row(policy), piece), piece}, options.place());
}

RowsAttentionLaunch AttentionSide::launch(const AttentionOptions& options,
                                          const AttentionInputs& inputs,
                                          const WorkspaceView& workspace) const {
  RowsAttentionLaunch launch;
  launch.pieces = schedule.pieces.data();
  launch.num_pieces = static_cast<std::uint32_t>(schedule.pieces.size());
  launch.num_rows = rows->num_rows;
  launch.short_row = schedule.short_row;
  launch.num_cut_rows = schedule.num_cut_rows;
  launch.num_done = workspace.counters;
  launch.offsets = rows->offsets();
  launch.indices = rows->indices.data();
  launch.heads = options.heads;
  launch.width = options.features / options.heads;
  launch.slope = static_cast<float>(options.negative_slope);
  launch.vector = inputs.vector.data;
  return launch;
}

}  // namespace tessera::ops
