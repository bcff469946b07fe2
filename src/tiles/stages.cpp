// SPDX-License-Identifier: Apache-2.0
#include "tiles/stages.hpp"

#include <algorithm>
#include <limits>

#include "tessera/core/error.hpp"

namespace tessera::tiles {
namespace {

constexpr int steps_per_tile = tile_columns / step_columns;
constexpr int bits_per_step = 4;

void append(const Piece& piece, int max_steps, int stretch_steps, std::vector<Stage>& stages) {
  int done = 0;
  do {
    Stage stage;
    stage.first_step = piece.first_step + done;
    stage.first_tile = piece.first_tile + done / steps_per_tile;
    stage.num_steps = static_cast<std::uint8_t>(std::min(max_steps, piece.num_steps - done));
    stage.bit_shift = static_cast<std::uint8_t>(done % steps_per_tile * bits_per_step) & 0xf;
    stage.after_stretch = stretch_steps > 0 && done >= stretch_steps ? 1 : 0;
    stage.last_row = static_cast<std::uint8_t>(piece.num_rows - 1);
    const bool cut = piece.slot >= 0;
    stage.target = cut ? piece.slot : piece.first_row;
    done += stage.num_steps;
    if (done == piece.num_steps) {
      stage.end = cut ? StageEnd::slot : StageEnd::rows;
    } else {
      stage.end =
          stretch_steps > 0 && done % stretch_steps == 0 ? StageEnd::stretch : StageEnd::none;
    }
    stages.push_back(stage);
  } while (done < piece.num_steps);
}

}  // namespace

StageLists make_stages(const PieceSchedule& schedule, int max_steps, int stretch_steps) {
  StageLists lists;
  const int whole_stages =
      stretch_steps == 0 ? 0 : std::max(1, stretch_steps / max_steps) * max_steps;
  lists.offsets.assign(1, 0);
  for (std::size_t worker = 0; worker + 1 < schedule.worker_offsets.size(); ++worker) {
    const auto begin = static_cast<std::size_t>(schedule.worker_offsets[worker]);
    const auto end = static_cast<std::size_t>(schedule.worker_offsets[worker + 1]);
    for (std::size_t i = begin; i < end; ++i) {
      append(schedule.pieces[i], max_steps, whole_stages, lists.stages);
    }
    lists.stages.emplace_back();
    if (lists.stages.size() > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::unsupported, "more than 2^31 - 1 stages of tiles in one graph",
                  "tiles", "partition the graph");
    }
    lists.offsets.push_back(static_cast<std::int32_t>(lists.stages.size()));
  }
  return lists;
}

std::int32_t most_stage_units(std::span<const std::int32_t> unit_offsets, int max_steps) {
  const std::size_t halves = max_steps < steps_per_tile ? 1 : 2;
  std::int32_t most = 0;
  for (std::size_t i = 0; i + halves < unit_offsets.size(); i += halves) {
    most = std::max(most, unit_offsets[i + halves] - unit_offsets[i]);
  }
  return most;
}

std::vector<StageValues> stage_values(const StageLists& lists,
                                      std::span<const std::int32_t> unit_offsets) {
  constexpr int half_steps = steps_per_tile / 2;
  std::vector<StageValues> all(lists.stages.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Stage& stage = lists.stages[i];
    if (stage.num_steps == 0) continue;
    const std::size_t tile = 2 * static_cast<std::size_t>(stage.first_tile);
    const std::size_t begin = tile + (stage.bit_shift == 0 ? 0 : 1);
    const std::size_t end = begin + (stage.num_steps > half_steps ? 2 : 1);
    all[i].first_unit = unit_offsets[begin];
    all[i].num_units = unit_offsets[end] - unit_offsets[begin];
    all[i].skipped = (unit_offsets[begin] - unit_offsets[tile]) * value_unit;
  }
  return all;
}

}  // namespace tessera::tiles
