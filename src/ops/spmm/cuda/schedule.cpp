// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/schedule.hpp"

#include <algorithm>

namespace tessera::ops {
namespace {

constexpr double gather_bytes_per_us = 8e6;  ///< what an H200 gathers from its L2
constexpr double step_us = 0.7;              ///< a load from L2, and what depends on it
/// Putting pieces together takes the time of a few steps, so none has fewer.
constexpr int min_piece_steps = 4;

}  // namespace

int steps_before_cut(double gathered_bytes) {
  const double whole_us = gathered_bytes / gather_bytes_per_us;
  return static_cast<int>(std::clamp(whole_us / 4 / step_us, 2.0, 256.0));
}

RowsSchedule make_rows_schedule(std::span<const EdgeOffset> offsets, const RowsPolicy& policy,
                                int max_steps) {
  RowsSchedule schedule;
  schedule.long_row = EdgeOffset{max_steps} * policy.edges * policy.unroll;
  const EdgeOffset piece = EdgeOffset{std::max(max_steps, min_piece_steps)} * rows_block_warps *
                           (32 / policy.lanes) * policy.unroll;
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    const EdgeOffset begin = offsets[row];
    const EdgeOffset length = offsets[row + 1] - begin;
    if (length <= schedule.long_row) continue;
    const auto target = static_cast<VertexId>(row);
    const EdgeOffset parts = (length + piece - 1) / piece;
    if (parts == 1) {
      schedule.pieces.push_back({target, -1, -1, begin, begin + length});
      continue;
    }
    const auto split_row = static_cast<std::int32_t>(schedule.split_rows.size());
    schedule.split_rows.push_back(
        {static_cast<std::int32_t>(schedule.num_slots), static_cast<std::int32_t>(parts)});
    for (EdgeOffset part = 0; part < parts; ++part) {
      schedule.pieces.push_back({target, split_row, static_cast<std::int32_t>(schedule.num_slots++),
                                 begin + length * part / parts,
                                 begin + length * (part + 1) / parts});
    }
  }
  return schedule;
}

}  // namespace tessera::ops
