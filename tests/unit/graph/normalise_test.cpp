// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/normalise.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using Vertices = std::vector<VertexId>;

TEST(GcnNormalised, OnAPathOfThree) {
  const Graph normalised = gcn_normalised(testing::path_graph(3));
  normalised.validate();
  EXPECT_FALSE(normalised.has_values());
  const auto entries = testing::entries_of(normalised);
  EXPECT_EQ(entries.size(), 7u);
  EXPECT_FLOAT_EQ(entries.at({0, 0}), 0.5f);
  EXPECT_FLOAT_EQ(entries.at({0, 1}), 1 / std::sqrt(6.0f));
  EXPECT_FLOAT_EQ(entries.at({1, 1}), 1 / 3.0f);
}

// Vertex 0 aggregates from 1; nothing aggregates from 0. The in-degree scales both ends.
TEST(GcnNormalised, UsesTheInDegreeOnBothSidesOfADirectedGraph) {
  const Graph graph = from_edges(2, Vertices{1}, Vertices{0});
  const auto entries = testing::entries_of(gcn_normalised(graph));
  EXPECT_FLOAT_EQ(entries.at({0, 1}), 1 / std::sqrt(2.0f));
  EXPECT_FLOAT_EQ(entries.at({0, 0}), 0.5f);
  EXPECT_FLOAT_EQ(entries.at({1, 1}), 1);
}

TEST(GcnNormalised, KeepsValuesAndTheWeightOfExistingLoops) {
  const Graph graph = from_coo(2, 2, Vertices{0, 0}, Vertices{0, 1}, std::vector<float>{3, 6});
  const Graph normalised = gcn_normalised(graph);
  EXPECT_EQ(normalised.values(), SharedArray<float>(std::vector<float>{3, 6, 1}));
  EXPECT_FLOAT_EQ(normalised.row_scale()[0], 1 / 3.0f);
  EXPECT_EQ(normalised.row_scale()[1], 1);
  EXPECT_EQ(normalised.row_scale(), normalised.col_scale());
}

TEST(GcnNormalised, IsZeroWhereTheDegreeIsNotPositive) {
  const Graph graph = from_coo(3, 3, Vertices{0, 1}, Vertices{1, 0}, std::vector<float>{-2, 4});
  const Graph normalised = gcn_normalised(graph, false);
  EXPECT_EQ(normalised.row_scale(), SharedArray<float>(std::vector<float>{0, 0.5f, 0}));
  EXPECT_EQ(normalised.num_edges(), 2);
}

TEST(GcnNormalised, RefusesRectanglesAndScaledGraphs) {
  EXPECT_THROW(gcn_normalised(from_coo(2, 3, {}, {})), Error);
  EXPECT_THROW(gcn_normalised(gcn_normalised(testing::path_graph(3))), Error);
  EXPECT_THROW(mean_normalised(gcn_normalised(testing::path_graph(3))), Error);
}

TEST(GcnNormalised, OfNoVertices) { EXPECT_EQ(gcn_normalised(Graph()), Graph()); }

TEST(MeanNormalised, DividesByTheNumberOfEdges) {
  const Graph graph =
      from_coo(3, 5, Vertices{0, 0, 0, 0, 2}, Vertices{0, 1, 2, 4, 3}, std::vector<float>(5, 2.0f));
  const Graph mean = mean_normalised(graph);
  mean.validate();
  EXPECT_EQ(mean.row_scale(), SharedArray<float>(std::vector<float>{0.25f, 0, 1}));
  EXPECT_FALSE(mean.has_col_scale());
  EXPECT_EQ(mean.weight(0, 3), 0.5f);
}

}  // namespace
}  // namespace tessera
