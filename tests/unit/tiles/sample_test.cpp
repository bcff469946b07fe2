// SPDX-License-Identifier: Apache-2.0
#include "tiles/sample.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/generate.hpp"

namespace tessera::tiles {
namespace {

/// So many rows, of which those from `first` on have so many columns each, all of their own.
Graph rows_with_edges(VertexId rows, VertexId first, VertexId count, VertexId degree) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < rows; ++row) {
    if (row >= first && row < first + count) {
      for (VertexId i = 0; i < degree; ++i) columns.push_back((row - first) * degree + i);
    }
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return {rows, rows, std::move(offsets), std::move(columns)};
}

/// Of every four windows of 64 rows one has a column for each of its rows, which all of them use;
/// rows of the others have a column of their own.
Graph communities_among_single_edges(VertexId windows) {
  std::vector<EdgeOffset> offsets = {0};
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < windows * 64; ++row) {
    const VertexId window = row / 64;
    const bool heavy = window % 4 == window / 4 % 4;
    const VertexId first = heavy ? window * 64 : row;
    for (VertexId i = 0; i < (heavy ? 64 : 1); ++i) columns.push_back(first + i);
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  return {windows * 64, windows * 64, std::move(offsets), std::move(columns)};
}

TEST(SampledWindows, DoNotStandForHeavierOnes) {
  // Every fourth window is looked at, of which every fourth is heavy, as of all.
  const Graph graph = communities_among_single_edges(2048);
  EXPECT_NEAR(sample_windows(graph, 64, Side::forward).columns, 2048 * 64, 2048 * 64 / 50);
}

TEST(SampledWindows, StandForWindowsUpToTheNext) {
  // The first window is looked at, and those behind it are not.
  const Graph graph = rows_with_edges(1 << 20, 0, 256, 40);
  EXPECT_DOUBLE_EQ(sample_windows(graph, 64, Side::forward).columns, 256 * 40);
}

TEST(SampledWindows, ShareNothingWhereAllEdgesAreInOthers) {
  // Of 16,384 windows every 32nd is looked at, and those with edges are none of them.
  const Graph graph = rows_with_edges(1 << 20, 64 * 33, 128, 40);
  const WindowSample sample = sample_windows(graph, 64, Side::forward);
  EXPECT_DOUBLE_EQ(sample.columns, 128 * 40);
  EXPECT_DOUBLE_EQ(sample.longest_columns, 64 * 40);
  EXPECT_DOUBLE_EQ(sample.rest_edges, 0);
}

TEST(SampledWindows, AreNothingWithoutEdges) {
  const Graph graph = generate::build(generate::ErdosRenyi{.vertices = 17, .edges = 0, .seed = 1});
  EXPECT_DOUBLE_EQ(sample_windows(graph, 64, Side::forward).columns, 0);
}

}  // namespace
}  // namespace tessera::tiles
