// SPDX-License-Identifier: Apache-2.0
#include "tiles/pieces.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"

namespace tessera::tiles {
namespace {

std::int64_t steps_of_worker(const PieceSchedule& schedule, std::int64_t worker) {
  std::int64_t steps = 0;
  for (auto i = schedule.worker_offsets[static_cast<std::size_t>(worker)];
       i < schedule.worker_offsets[static_cast<std::size_t>(worker) + 1]; ++i) {
    steps += schedule.pieces[static_cast<std::size_t>(i)].num_steps;
  }
  return steps;
}

WindowSteps steps_of(const TiledGraph& tiled) {
  return {.num_rows = tiled.num_rows,
          .height = tiled.height,
          .step_offsets = tiled.step_offsets.span(),
          .tile_offsets = tiled.tile_offsets.span()};
}

/// Each window's pieces, by row, cover its steps without gaps, in slots that rise with them.
void expect_complete(const TiledGraph& tiled, const PieceSchedule& schedule) {
  std::map<VertexId, std::vector<Piece>> windows;
  for (const Piece& piece : schedule.pieces) windows[piece.first_row].push_back(piece);
  ASSERT_EQ(static_cast<std::int64_t>(windows.size()), tiled.num_windows());
  std::map<VertexId, CutWindow> cut;
  std::int32_t slots = 0;
  for (const CutWindow& window : schedule.cut_windows) {
    EXPECT_EQ(window.first_slot, slots);
    slots += window.num_slots;
    cut[window.first_row] = window;
  }
  EXPECT_EQ(slots, schedule.num_slots);
  for (auto& [row, pieces] : windows) {
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.first_step < b.first_step; });
    const std::int64_t window = row / tiled.height;
    EdgeOffset step = tiled.step_offsets[window];
    EXPECT_EQ(cut.contains(row) ? static_cast<std::size_t>(cut[row].num_slots) : 1, pieces.size());
    std::int32_t slot = cut.contains(row) ? cut[row].first_slot : -1;
    for (const Piece& piece : pieces) {
      EXPECT_EQ(piece.first_step, step);
      EXPECT_EQ((piece.first_step - tiled.step_offsets[window]) % 4, 0);
      EXPECT_EQ(piece.first_tile - tiled.tile_offsets[window],
                (piece.first_step - tiled.step_offsets[window]) / 4);
      EXPECT_EQ(piece.num_rows, std::min(tiled.height, tiled.num_rows - row));
      EXPECT_EQ(piece.slot, pieces.size() == 1 ? -1 : slot++);
      step += piece.num_steps;
    }
    EXPECT_EQ(step, tiled.step_offsets[window + 1]);
  }
}

TEST(Pieces, CoverEveryWindowOnce) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    for (const int height : {64, 128, 256}) {
      const TiledGraph tiled = translate(named.graph, height);
      for (const int workers : {1, 3, 1000}) {
        SCOPED_TRACE(workers);
        expect_complete(tiled, make_pieces(tiled, {workers, 4}));
        expect_complete(tiled, make_filled_pieces(steps_of(tiled), {workers, 4}));
      }
    }
  }
}

TEST(Pieces, CutHubsAndKeepShortWindowsWhole) {
  // One window with 4500 columns: 282 steps; the other windows have a few.
  const TiledGraph tiled = translate(testing::hub_graph(640, 4500, 1), 64);
  const PieceSchedule schedule = make_pieces(tiled, {8, 32});
  ASSERT_EQ(schedule.cut_windows.size(), 1u);
  EXPECT_EQ(schedule.cut_windows[0].first_row, 0);
  EXPECT_EQ(schedule.cut_windows[0].num_slots, schedule.num_slots);
  EXPECT_GT(schedule.num_slots, 2);
  const PieceSchedule whole = make_pieces(tiled, {8, 1000});
  EXPECT_TRUE(whole.cut_windows.empty());
}

TEST(Pieces, AreNoLongerThanTheyMayBe) {
  const TiledGraph tiled = translate(testing::hub_graph(640, 4500, 1), 64);
  const PieceSchedule schedule =
      make_pieces(tiled, {.workers = 1, .min_cut_steps = 1000, .max_steps = 40});
  ASSERT_EQ(schedule.cut_windows.size(), 1u);
  EXPECT_EQ(schedule.num_slots, 8);
  for (const Piece& piece : schedule.pieces) EXPECT_LE(piece.num_steps, 40);
  expect_complete(tiled, schedule);
}

TEST(Pieces, GiveEveryWorkerAboutTheSame) {
  const TiledGraph tiled = translate(testing::random_graph(6400, 3000, 60000, 2, false), 64);
  const PieceSchedule schedule = make_pieces(tiled, {7, 4});
  ASSERT_EQ(schedule.num_workers(), 7);
  std::int64_t least = tiled.num_steps();
  std::int64_t most = 0;
  for (std::int64_t worker = 0; worker < 7; ++worker) {
    least = std::min(least, steps_of_worker(schedule, worker));
    most = std::max(most, steps_of_worker(schedule, worker));
  }
  EXPECT_LE(most, least + least / 4);
}

/// A window and a half for each worker, and few or many of them: equal parts of windows would be
/// one for some workers and two for others.
TEST(FilledPieces, GiveEveryWorkerAboutTheSameOfFewWindows) {
  constexpr int height = 64;
  for (const int workers : {3, 40, 500}) {
    for (const int percent : {30, 60, 90, 150, 220, 350}) {
      SCOPED_TRACE(::testing::Message() << workers << ", " << percent);
      std::vector<EdgeOffset> steps = {0};
      std::vector<EdgeOffset> tiles = {0};
      const auto num_windows = static_cast<VertexId>(std::max(2, workers * percent / 100));
      for (VertexId w = 0; w < num_windows; ++w) {
        const EdgeOffset count = 90 + w * 37 % 71;
        steps.push_back(steps.back() + count);
        tiles.push_back(tiles.back() + (count + 3) / 4);
      }
      const PieceSchedule schedule = make_filled_pieces({.num_rows = num_windows * height,
                                                         .height = height,
                                                         .step_offsets = steps,
                                                         .tile_offsets = tiles},
                                                        {workers, 32});
      std::int64_t most = 0;
      for (std::int64_t worker = 0; worker < schedule.num_workers(); ++worker) {
        most = std::max(most, steps_of_worker(schedule, worker));
      }
      EXPECT_LE(most, steps.back() / workers * 9 / 8 + 24);
      for (const Piece& piece : schedule.pieces) EXPECT_GE(piece.num_steps, 8);
    }
  }
}

TEST(FilledPieces, LeaveWindowsWholeThatEvenOutByThemselves) {
  const TiledGraph tiled = translate(testing::random_graph(64'000, 3000, 600'000, 2, false), 64);
  const PieceSchedule schedule = make_filled_pieces(steps_of(tiled), {7, 32});
  EXPECT_EQ(schedule.num_slots, 0);
  EXPECT_EQ(schedule.num_workers(), 7);
}

TEST(Pieces, ComputeNeighboursAtTheSameTimeWhateverTheirSizes) {
  // Windows of one step and of eight by turns, of which every worker takes many.
  constexpr int height = 16;
  constexpr VertexId num_windows = 4000;
  constexpr int workers = 50;
  std::vector<EdgeOffset> steps = {0};
  std::vector<EdgeOffset> tiles = {0};
  for (VertexId w = 0; w < num_windows; ++w) {
    const EdgeOffset count = w % 2 == 0 ? 1 : 8;
    steps.push_back(steps.back() + count);
    tiles.push_back(tiles.back() + (count + 3) / 4);
  }
  const PieceSchedule schedule = make_pieces(WindowSteps{.num_rows = num_windows * height,
                                                         .height = height,
                                                         .step_offsets = steps,
                                                         .tile_offsets = tiles},
                                             {workers, 32});
  ASSERT_EQ(schedule.num_workers(), workers);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const auto begin = schedule.worker_offsets[worker];
    const auto end = schedule.worker_offsets[worker + 1];
    for (auto i = begin; i < end; ++i) {
      const double done = static_cast<double>(i - begin) / (end - begin);
      const double place =
          static_cast<double>(schedule.pieces[static_cast<std::size_t>(i)].first_row) /
          (num_windows * height);
      EXPECT_NEAR(place, done, 0.1);
    }
  }
}

/// Of costs so large that not all are told apart, no worker has more than another by more than the
/// largest piece and what is not told apart.
TEST(Pieces, GiveEveryWorkerAboutTheSameOfVeryLargeOnes) {
  constexpr int height = 16;
  for (const EdgeOffset largest : {4'090, 4'092, 8'187, 8'190, 100'000}) {
    for (const int workers : {1, 2, 7, 40}) {
      SCOPED_TRACE(::testing::Message() << largest << ", " << workers);
      std::vector<EdgeOffset> steps = {0};
      std::vector<EdgeOffset> tiles = {0};
      constexpr VertexId num_windows = 300;
      for (VertexId w = 0; w < num_windows; ++w) {
        const EdgeOffset count = w % 3 == 0 ? largest - w % 7 : w * largest / 1000;
        steps.push_back(steps.back() + count);
        tiles.push_back(tiles.back() + (count + 3) / 4);
      }
      const PieceSchedule schedule = make_pieces(WindowSteps{.num_rows = num_windows * height,
                                                             .height = height,
                                                             .step_offsets = steps,
                                                             .tile_offsets = tiles},
                                                 {workers, largest});
      ASSERT_EQ(schedule.num_workers(), workers);
      ASSERT_EQ(schedule.pieces.size(), static_cast<std::size_t>(num_windows));
      std::vector<int> taken(num_windows, 0);
      for (const Piece& piece : schedule.pieces) {
        ++taken[static_cast<std::size_t>(piece.first_row / height)];
      }
      EXPECT_EQ(taken, std::vector<int>(num_windows, 1));
      std::int64_t least = steps.back(), most = 0;
      for (std::int64_t worker = 0; worker < workers; ++worker) {
        const std::int64_t load = steps_of_worker(schedule, worker);
        least = std::min(least, load);
        most = std::max(most, load);
      }
      EXPECT_LE(most - least, largest + largest / 10);
    }
  }
}

TEST(Pieces, HaveNoMoreWorkersThanPieces) {
  const TiledGraph tiled = translate(testing::path_graph(100), 64);
  EXPECT_EQ(make_pieces(tiled, {50, 32}).num_workers(), 2);
  EXPECT_EQ(make_pieces(translate(Graph(), 64), {50, 32}).num_workers(), 0);
}

}  // namespace
}  // namespace tessera::tiles
