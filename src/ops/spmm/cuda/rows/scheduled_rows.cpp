// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/scheduled_rows.hpp"

#include <span>

#include "cuda/array.hpp"
#include "ops/spmm/cuda/rows/row_lists.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {

VertexId sorted_neighbours(const Graph& graph, tiles::Side side, Precision precision) {
  if (bytes_per_element(precision) < 4) return list_window_rows;
  const double sources = tiles::sample_windows(graph, 64, side).columns;
  return static_cast<double>(graph.num_edges()) >= 2 * sources ? near_list_rows : list_window_rows;
}

ScheduledRows::ScheduledRows(const cuda::DeviceRows& matrix, const RowLengths& rows,
                             const RowsPolicy& policy, const RowsCut& cut, const Place& place,
                             VertexId sorted_rows)
    : cut_(cut), short_row_(cut.short_row(policy)) {
  const RowsSchedule schedule = make_rows_schedule(rows, policy, cut);
  const auto ids = cuda::to_device(rows.ids, place);
  num_short_ = policy.listed ? schedule.num_short : std::int64_t{matrix.num_rows};
  num_slots_ = schedule.num_slots;
  pieces_ = cuda::to_device(std::span<const LongPiece>(schedule.pieces), place);
  split_rows_ = cuda::to_device(std::span<const SplitRow>(schedule.split_rows), place);
  short_rows_ = Buffer<RowStart>(schedule.num_short, place);
  wide_rows_ = Buffer<RowSlice>(schedule.num_wide, place);
  if (short_rows_.empty() && wide_rows_.empty()) return;
  RowListsLaunch launch;
  launch.num_rows = rows.ids.empty() ? matrix.num_rows : static_cast<VertexId>(rows.ids.size());
  launch.ids = ids.data();
  launch.offsets = matrix.offsets();
  launch.indices = matrix.indices.data();
  launch.short_row = short_row_;
  launch.wide_row = cut.longest_wide_row(policy);
  launch.short_step = policy.step();
  launch.wide_step = whole_warp(policy).step();
  launch.sorted_rows = sorted_rows;
  launch.short_rows = short_rows_.data();
  launch.wide_rows = wide_rows_.data();
  const auto starts = cuda::to_device(launch.set_starts(schedule), place);
  launch.starts = starts.data();
  list_rows(launch, place.stream);
}

RowsLaunch::Work ScheduledRows::work() const {
  RowsLaunch::Work work;
  const auto block_warps = static_cast<unsigned>(cut_.block_threads / 32);
  work.block_threads = static_cast<unsigned>(cut_.block_threads);
  work.pieces = pieces_.data();
  work.num_pieces = static_cast<std::uint32_t>(pieces_.size());
  work.wide_rows = wide_rows_.data();
  work.num_wide = static_cast<std::uint32_t>(wide_rows_.size());
  work.num_wide_blocks = (work.num_wide + block_warps - 1) / block_warps;
  work.short_rows = short_rows_.data();
  work.num_short = static_cast<std::uint32_t>(num_short_);
  work.short_row = short_row_;
  work.split_rows = split_rows_.data();
  return work;
}

}  // namespace tessera::ops
