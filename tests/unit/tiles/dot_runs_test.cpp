// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_steps.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"

namespace tessera::tiles {
namespace {

constexpr int most_steps = 4;

TiledGraph tiles_of(const Graph& graph) { return translate(graph, 16); }

void expect_every_step_once(const TiledGraph& tiled, const std::vector<DotRun>& runs,
                            int run_steps) {
  std::vector<int> times(static_cast<std::size_t>(tiled.num_steps()));
  for (const DotRun& run : runs) {
    EXPECT_GE(run.num_steps(), 1);
    EXPECT_LE(run.num_steps(), run_steps);
    for (int i = 0; i < run.num_steps(); ++i) {
      const std::int64_t step = run.first_step + i;
      ASSERT_GE(step, tiled.step_offsets[run.window()]);
      ASSERT_LT(step, tiled.step_offsets[run.window() + 1]);
      ++times[static_cast<std::size_t>(step)];
    }
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), tiled.num_steps());
}

TEST(DotRuns, HaveEveryStepOnce) {
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  graphs.push_back({"hub", testing::hub_graph(300, 5000, 3)});
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    const TiledGraph tiled = tiles_of(named.graph);
    for (const int run_steps : {1, 3, most_steps}) {
      SCOPED_TRACE(run_steps);
      expect_every_step_once(tiled, cut_into_runs(tiled, run_steps), run_steps);
    }
  }
}

TEST(DotRuns, OfAWindowAreOfAboutEqualLength) {
  const TiledGraph tiled = tiles_of(testing::hub_graph(16, 5 * 16, 5));
  ASSERT_EQ(tiled.num_steps(), 5);
  const std::vector<DotRun> runs = cut_into_runs(tiled, 4);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].num_steps(), 2);
  EXPECT_EQ(runs[1].num_steps(), 3);
}

TEST(DotRuns, AreSharedByAllBlocks) {
  const std::vector<DotRun> runs =
      cut_into_runs(tiles_of(testing::random_graph(3000, 3000, 90000, 6, false)), most_steps);
  std::int64_t total = 0;
  for (const DotRun& run : runs) total += run.num_steps() + 1;
  for (const int blocks : {1, 7, 100, static_cast<int>(runs.size())}) {
    SCOPED_TRACE(blocks);
    const std::vector<std::int32_t> offsets = share_runs(runs, blocks);
    ASSERT_EQ(std::ssize(offsets), blocks + 1);
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_EQ(offsets.back(), std::ssize(runs));
    for (int b = 0; b < blocks; ++b) {
      const auto at = static_cast<std::size_t>(b);
      ASSERT_LE(offsets[at], offsets[at + 1]);
      std::int64_t share = 0;
      for (std::int32_t i = offsets[at]; i < offsets[at + 1]; ++i) {
        share += runs[static_cast<std::size_t>(i)].num_steps() + 1;
      }
      EXPECT_LE(share, total / blocks + most_steps + 2);
    }
  }
}

TEST(DotRuns, OfAGraphWithoutEdgesAreNone) {
  const std::vector<DotRun> runs =
      cut_into_runs(tiles_of(testing::random_graph(40, 40, 0, 1, false)), most_steps);
  EXPECT_TRUE(runs.empty());
  EXPECT_EQ(share_runs(runs, 0), std::vector<std::int32_t>{0});
}

}  // namespace
}  // namespace tessera::tiles
