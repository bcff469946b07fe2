// SPDX-License-Identifier: Apache-2.0
#include "tiles/stages.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"

namespace tessera::tiles {
namespace {

/// The stages of each worker are its pieces, cut, and one that ends its work.
void expect_same_work(const PieceSchedule& schedule, const StageLists& lists, int max_steps,
                      int stretch_steps) {
  ASSERT_EQ(lists.offsets.size(), schedule.worker_offsets.size());
  for (std::size_t worker = 0; worker + 1 < lists.offsets.size(); ++worker) {
    auto at = static_cast<std::size_t>(lists.offsets[worker]);
    for (auto i = schedule.worker_offsets[worker]; i < schedule.worker_offsets[worker + 1]; ++i) {
      const Piece& piece = schedule.pieces[static_cast<std::size_t>(i)];
      int done = 0;
      for (bool more = true; more; ++at) {
        const Stage& stage = lists.stages[at];
        EXPECT_EQ(stage.first_step, piece.first_step + done);
        EXPECT_EQ(stage.first_tile, piece.first_tile + done / 4);
        EXPECT_EQ(stage.bit_shift, done % 4 * 4);
        EXPECT_EQ(stage.after_stretch != 0, stretch_steps > 0 && done >= stretch_steps);
        EXPECT_EQ(stage.last_row, piece.num_rows - 1);
        EXPECT_EQ(stage.num_steps, std::min(max_steps, piece.num_steps - done));
        done += stage.num_steps;
        more = done < piece.num_steps;
        const StageEnd end = piece.slot >= 0 ? StageEnd::slot : StageEnd::rows;
        const bool stretch = stretch_steps > 0 && done % stretch_steps == 0;
        EXPECT_EQ(stage.end, !more ? end : stretch ? StageEnd::stretch : StageEnd::none);
        EXPECT_EQ(stage.target, piece.slot >= 0 ? piece.slot : piece.first_row);
      }
    }
    EXPECT_EQ(lists.stages[at].end, StageEnd::work);
    EXPECT_EQ(lists.stages[at].num_steps, 0);
    EXPECT_EQ(static_cast<std::size_t>(lists.offsets[worker + 1]), at + 1);
  }
}

TEST(Stages, AreThePiecesOfEveryWorker) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    for (const int height : {64, 128, 256}) {
      const TiledGraph tiled = translate(named.graph, height);
      for (const int workers : {1, 3, 1000}) {
        const PieceSchedule schedule = make_pieces(tiled, {workers, 8});
        for (const int max_steps : {2, 4, 8}) {
          SCOPED_TRACE(max_steps);
          for (const int stretch_steps : {0, 8, 32}) {
            expect_same_work(schedule, make_stages(schedule, max_steps, stretch_steps), max_steps,
                             stretch_steps);
          }
        }
        // Stretches of whole stages.
        expect_same_work(schedule, make_stages(schedule, 12, 32), 12, 24);
        expect_same_work(schedule, make_stages(schedule, 12, 8), 12, 12);
      }
    }
  }
}

TEST(Stages, StandForEmptyWindowsToo) {
  const std::vector<VertexId> none;
  const StageLists lists =
      make_stages(make_pieces(translate(from_coo(70, 5, none, none), 64), {2, 8}), 4);
  ASSERT_EQ(lists.stages.size(), 4u);
  EXPECT_EQ(lists.stages[0].end, StageEnd::rows);
  EXPECT_EQ(lists.stages[0].last_row, 63);
  EXPECT_EQ(lists.stages[2].target, 64);
  EXPECT_EQ(lists.stages[2].last_row, 5);
  EXPECT_TRUE(make_stages(make_pieces(translate(Graph(), 64), {2, 8}), 4).stages.empty());
}

}  // namespace
}  // namespace tessera::tiles
