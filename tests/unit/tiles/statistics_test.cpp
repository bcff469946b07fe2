// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/statistics.hpp"

#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"

namespace tessera::tiles {
namespace {

TEST(WindowStats, OfNoRows) {
  const WindowStats stats = window_stats(Graph(), 64);
  EXPECT_EQ(stats.num_windows, 0);
  EXPECT_EQ(stats.blocks_after, 0);
  EXPECT_EQ(stats.reuse(), 0);
  EXPECT_EQ(stats.density_after(), 0);
  EXPECT_EQ(stats.padding(), 0);
}

TEST(WindowStats, CountBlocksBeforeAndAfterTranslation) {
  // Rows 0 and 1 use columns 0, 20 and 40; row 9, in the second window, uses column 40.
  const std::vector<VertexId> rows = {0, 0, 0, 1, 1, 1, 9};
  const std::vector<VertexId> cols = {0, 20, 40, 0, 20, 40, 40};
  const WindowStats stats = window_stats(from_coo(10, 64, rows, cols), 8);
  EXPECT_EQ(stats.num_windows, 2);
  EXPECT_EQ(stats.blocks_before, 4);
  EXPECT_EQ(stats.blocks_after, 2);
  EXPECT_EQ(stats.distinct_columns, 4);
  EXPECT_DOUBLE_EQ(stats.reuse(), 7.0 / 4);
  EXPECT_DOUBLE_EQ(stats.density_after(), 7.0 / (2 * 8 * 16));
  EXPECT_DOUBLE_EQ(stats.density_before(), 7.0 / (4 * 8 * 16));
  EXPECT_DOUBLE_EQ(stats.padding(), 1 - 4.0 / 32);
  EXPECT_EQ(stats.blocks_histogram, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(stats.shared_by, (std::vector<std::int64_t>{1, 3}));
  std::ostringstream text;
  text << stats;
  EXPECT_NE(text.str().find("2 blocks of 16 columns (4 before translation)"), std::string::npos)
      << text.str();
}

TEST(WindowStats, AgreeWithTheTiles) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    for (const int height : window_heights) {
      for (const Side side : {Side::forward, Side::transposed}) {
        const TiledGraph tiled = translate(named.graph, height, side);
        const WindowStats stats = window_stats(named.graph, height, step_columns, side);
        EXPECT_EQ(stats.num_windows, tiled.num_windows());
        EXPECT_EQ(stats.blocks_after, tiled.num_steps());
        EXPECT_EQ(stats.tiled_bytes, tiled.num_bytes());
        EXPECT_EQ(std::accumulate(stats.blocks_histogram.begin(), stats.blocks_histogram.end(),
                                  std::int64_t{0}),
                  tiled.num_windows());
        EXPECT_LE(stats.blocks_after, stats.blocks_before);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::tiles
