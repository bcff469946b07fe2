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

TEST(SampledWindows, StandForTheEdgesUpToTheNext) {
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
