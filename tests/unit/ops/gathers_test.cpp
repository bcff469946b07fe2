// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/gathers.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"

namespace tessera::ops {
namespace {

using tiles::Side;

/// Row i asks for the columns of `columns_of(i)`.
template <class Columns>
Graph graph_of(VertexId rows, VertexId cols, Columns columns_of) {
  std::vector<VertexId> row_ids, col_ids;
  for (VertexId row = 0; row < rows; ++row) {
    for (const VertexId column : columns_of(row)) {
      row_ids.push_back(row);
      col_ids.push_back(column);
    }
  }
  return from_coo(rows, cols, row_ids, col_ids);
}

TEST(GathersTest, RowsThatShareTheirColumnsFindThemNearby) {
  const Graph graph = graph_of(1024, 2, [](VertexId) { return std::vector<VertexId>{0, 1}; });
  const GatherShares shares = gather_shares(graph, Side::forward, 0, 0);
  EXPECT_DOUBLE_EQ(shares.near, 1 - 1.0 / 64);
  // Both columns come anew for each of four windows of 256 rows, the first time not counted.
  EXPECT_DOUBLE_EQ(shares.missed, 6.0 / 2048);
  EXPECT_DOUBLE_EQ(gather_shares(graph, Side::forward, 0, 2).missed, 0);
}

/// Windows of 256 rows whose columns are all different, and the same in each of the four.
Graph unshared_columns() {
  return graph_of(1024, 256, [](VertexId row) { return std::vector<VertexId>{255 - row % 256}; });
}

TEST(GathersTest, ColumnsThatNobodyNearbySharesComeFromMemoryUnlessTheCacheHasThem) {
  const Graph graph = unshared_columns();
  EXPECT_DOUBLE_EQ(gather_shares(graph, Side::forward, 0, 0).near, 0);
  EXPECT_DOUBLE_EQ(gather_shares(graph, Side::forward, 0, 0).missed, 0.75);
  EXPECT_DOUBLE_EQ(gather_shares(graph, Side::forward, 0, 64).missed, 0.5);
  EXPECT_DOUBLE_EQ(gather_shares(graph, Side::forward, 0, 1e9).missed, 0);
}

TEST(GathersTest, RowsShareAsMuchAsFitsIntoTheCacheNearby) {
  // All 64 rows of a window ask for the same four rows of X.
  const Graph graph = graph_of(1024, 4, [](VertexId) { return std::vector<VertexId>{0, 1, 2, 3}; });
  const auto near = [&](double window_rows) {
    return gather_shares(graph, Side::forward, 0, 0, window_rows).near;
  };
  EXPECT_DOUBLE_EQ(near(4), 1 - 1.0 / 64);
  EXPECT_DOUBLE_EQ(near(1), near(4) / 4);
  EXPECT_DOUBLE_EQ(near(0), 0);
}

TEST(GathersTest, TheCacheKeepsWhatIsUsedMost) {
  // One of 65 rows has half of all edges, and no two rows of 64 share a column.
  const Graph graph = graph_of(65, 1024, [](VertexId row) {
    std::vector<VertexId> columns;
    for (VertexId i = 0; i < (row == 0 ? 64 : 1); ++i) columns.push_back(row + 2 * i * (row == 0));
    return columns;
  });
  const double far = 1 - gather_shares(graph, Side::forward, 0, 0).near;
  EXPECT_GT(far, 0.5);
  EXPECT_DOUBLE_EQ(1 - gather_shares(graph, Side::forward, 1024.0 / 65, 0).near, 0.5 * far);
}

TEST(GathersTest, AGraphWithoutEdgesAsksForNothing) {
  const Graph graph = graph_of(5, 5, [](VertexId) { return std::vector<VertexId>{}; });
  EXPECT_EQ(gather_shares(graph, Side::forward, 10, 10).near, 0);
  EXPECT_EQ(gather_shares(graph, Side::forward, 10, 10).missed, 0);
}

TEST(GathersTest, RowsTakeLongerTheFartherTheyComeFrom) {
  constexpr GatherRates rates = {20e6, 10e6, 4e6, 1e5, 1e6, 3e5};
  const Graph scattered = generate::build(generate::ErdosRenyi{.vertices = 20000, .edges = 80000});
  const Graph local = generate::build(
      generate::BlockModel{.vertices = 20000, .communities = 1000, .mean_degree = 8, .inside = 1});
  const auto us = [&](const Graph& graph, double bytes) {
    return rates.us_per_byte(graph, Side::forward, bytes);
  };
  EXPECT_GT(us(scattered, 512), us(scattered, 128));
  EXPECT_GT(us(scattered, 128), us(scattered, 16));
  EXPECT_GT(us(scattered, 512), us(local, 512));
  GatherRates half = rates;
  half.scale({0.5, 0.5});
  EXPECT_DOUBLE_EQ(half.us_per_byte(local, Side::forward, 512), 2 * us(local, 512));
}

}  // namespace
}  // namespace tessera::ops
