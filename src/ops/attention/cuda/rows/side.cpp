// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/side.hpp"

#include <algorithm>
#include <utility>

#include "core/device_traits.hpp"
#include "ops/spmm/cuda/rows/cut.hpp"

namespace tessera::ops {
namespace {

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
