// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/stats.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using Vertices = std::vector<VertexId>;

TEST(Stats, OfNoVertices) {
  const GraphStats stats = compute_stats(Graph());
  EXPECT_EQ(stats.num_edges, 0);
  EXPECT_EQ(stats.min_degree, 0);
  EXPECT_EQ(stats.mean_degree, 0);
  EXPECT_EQ(stats.num_components, 0);
  EXPECT_TRUE(stats.symmetric_values);
  EXPECT_TRUE(stats.degree_histogram.empty());
}

TEST(Stats, OfAPathAndAnIsolatedVertexAndALoop) {
  // 0 - 1 - 2, 3 alone, 4 with a loop.
  const Graph graph = from_coo(5, 5, Vertices{0, 1, 1, 2, 4}, Vertices{1, 0, 2, 1, 4});
  const GraphStats stats = compute_stats(graph);
  EXPECT_EQ(stats.num_self_loops, 1);
  EXPECT_EQ(stats.edges_symmetrised_loop_free, 4);
  EXPECT_EQ(stats.min_degree, 0);
  EXPECT_EQ(stats.max_degree, 2);
  EXPECT_EQ(stats.mean_degree, 1);
  EXPECT_EQ(stats.median_degree, 1);
  EXPECT_EQ(stats.num_isolated, 1);
  EXPECT_EQ(stats.num_empty_rows, 1);
  EXPECT_EQ(stats.num_components, 3);
  EXPECT_EQ(stats.largest_component, 3);
  EXPECT_TRUE(stats.symmetric_pattern);
  EXPECT_EQ(stats.bandwidth, 1);
  EXPECT_EQ(stats.degree_histogram, (std::vector<std::int64_t>{1, 3, 1}));
  EXPECT_EQ(connected_components(graph), (Vertices{0, 0, 0, 1, 2}));
}

TEST(Stats, OfADirectedGraph) {
  // 3 -> 0, 0 <-> 1 and nothing else: vertex 3 has an empty row but is not isolated.
  const Graph graph = from_edges(4, Vertices{3, 0, 1}, Vertices{0, 1, 0});
  const GraphStats stats = compute_stats(graph);
  EXPECT_FALSE(stats.symmetric_pattern);
  EXPECT_FALSE(stats.symmetric_values);
  EXPECT_EQ(stats.edges_symmetrised_loop_free, 4);
  EXPECT_EQ(stats.num_empty_rows, 2);
  EXPECT_EQ(stats.num_isolated, 1);
  EXPECT_EQ(stats.num_components, 2);
  EXPECT_EQ(stats.median_degree, 0.5);
  EXPECT_EQ(stats.bandwidth, 3);
}

TEST(Stats, SymmetryOfValuesLooksAtFullWeights) {
  const auto weighted = [](float there, float back) {
    return from_coo(2, 2, Vertices{0, 1}, Vertices{1, 0}, std::vector<float>{there, back});
  };
  EXPECT_TRUE(compute_stats(weighted(2, 2)).symmetric_values);
  EXPECT_FALSE(compute_stats(weighted(2, 3)).symmetric_values);
  EXPECT_TRUE(compute_stats(weighted(2, 3)).symmetric_pattern);
  const Graph evened = weighted(2, 4).with_scales(std::vector<float>{2, 1}, {});
  EXPECT_TRUE(compute_stats(evened).symmetric_values);
  EXPECT_FALSE(compute_stats(evened.with_values({})).symmetric_values);
}

TEST(Stats, OfARectangularGraph) {
  // Targets 0, 1; sources 0, 1, 2: an entry (1, 1) is no loop.
  const Graph graph = from_coo(2, 3, Vertices{1, 1}, Vertices{1, 2});
  const GraphStats stats = compute_stats(graph);
  EXPECT_EQ(stats.num_self_loops, 0);
  EXPECT_EQ(stats.edges_symmetrised_loop_free, -1);
  EXPECT_FALSE(stats.symmetric_pattern);
  EXPECT_EQ(stats.num_isolated, 2);
  EXPECT_EQ(stats.num_components, 3);
  EXPECT_EQ(connected_components(graph), (Vertices{0, 1, 2, 1, 1}));
}

TEST(Stats, OfAStarWithAHundredThousandLeaves) {
  const GraphStats stats = compute_stats(testing::star_graph(100000));
  EXPECT_EQ(stats.max_degree, 100000);
  EXPECT_EQ(stats.median_degree, 1);
  EXPECT_EQ(stats.num_components, 1);
  EXPECT_TRUE(stats.symmetric_values);
  EXPECT_EQ(stats.degree_histogram.size(), 18u);
  EXPECT_EQ(stats.degree_histogram[17], 1);
}

TEST(Stats, PrintTheirNumbers) {
  std::ostringstream out;
  out << compute_stats(testing::path_graph(17));
  EXPECT_NE(out.str().find("17"), std::string::npos);
  EXPECT_NE(out.str().find("32, 0 of them self loops"), std::string::npos);
}

}  // namespace
}  // namespace tessera
