// SPDX-License-Identifier: Apache-2.0
#include "tiles/stages.hpp"

#include <algorithm>
#include <limits>

#include "tessera/core/error.hpp"

namespace tessera::tiles {
namespace {

constexpr int steps_per_tile = tile_columns / step_columns;
constexpr int bits_per_step = 4;

void append(const Piece& piece, int max_steps, std::vector<Stage>& stages) {
  int done = 0;
  do {
    Stage stage;
    stage.first_step = piece.first_step + done;
    stage.first_tile = piece.first_tile + done / steps_per_tile;
    stage.num_steps = static_cast<std::uint8_t>(std::min(max_steps, piece.num_steps - done));
    stage.bit_shift = static_cast<std::uint8_t>(done % steps_per_tile * bits_per_step);
    stage.last_row = static_cast<std::uint8_t>(piece.num_rows - 1);
    const bool cut = piece.slot >= 0;
    stage.target = cut ? piece.slot : piece.first_row;
    done += stage.num_steps;
    stage.end = done < piece.num_steps ? StageEnd::none : cut ? StageEnd::slot : StageEnd::rows;
    stages.push_back(stage);
  } while (done < piece.num_steps);
}

}  // namespace

StageLists make_stages(const PieceSchedule& schedule, int max_steps) {
  StageLists lists;
  lists.offsets.assign(1, 0);
  for (std::size_t worker = 0; worker + 1 < schedule.worker_offsets.size(); ++worker) {
    const auto begin = static_cast<std::size_t>(schedule.worker_offsets[worker]);
    const auto end = static_cast<std::size_t>(schedule.worker_offsets[worker + 1]);
    for (std::size_t i = begin; i < end; ++i) append(schedule.pieces[i], max_steps, lists.stages);
    lists.stages.emplace_back();
    if (lists.stages.size() > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::unsupported, "more than 2^31 - 1 stages of tiles in one graph",
                  "tiles", "partition the graph");
    }
    lists.offsets.push_back(static_cast<std::int32_t>(lists.stages.size()));
  }
  return lists;
}

}  // namespace tessera::tiles
