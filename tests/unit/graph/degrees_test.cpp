// SPDX-License-Identifier: Apache-2.0
#include "graph/degrees.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/generate.hpp"

namespace tessera {
namespace {

TEST(DegreesTest, CountsEveryDegreeOnce) {
  const std::vector<EdgeOffset> offsets = {0, 3, 3, 6, 5006, 5007, 10007};
  const DegreeStatistics degrees = degree_statistics(offsets);
  ASSERT_EQ(degrees.counts.size(), 4u);
  EXPECT_EQ(degrees.counts[1].degree, 1);
  EXPECT_EQ(degrees.counts[2].rows, 2);
  EXPECT_EQ(degrees.longest(), 5000);
  EXPECT_EQ(degrees.rows_beyond(3), 2);
  EXPECT_EQ(degrees.rows_beyond(0), 5);
  EXPECT_EQ(degrees.rows_beyond(5000), 0);
  EXPECT_DOUBLE_EQ(degrees.mean(), 10007.0 / 6);
  EXPECT_EQ(degree_statistics(std::vector<EdgeOffset>{0}).longest(), 0);
}

TEST(DegreesTest, RowsAndColumnsOfAGraphAreCountedOnce) {
  const Graph graph = generate::build(generate::Bipartite{});
  EXPECT_EQ(row_degrees(graph), row_degrees(graph));
  EXPECT_EQ(row_degrees(graph)->num_rows, graph.num_rows());
  EXPECT_EQ(column_degrees(graph)->num_rows, graph.num_cols());
  EXPECT_EQ(column_degrees(graph)->num_edges, graph.num_edges());
}

}  // namespace
}  // namespace tessera
