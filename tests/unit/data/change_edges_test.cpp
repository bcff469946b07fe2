// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/change_edges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"
#include "tessera/reorder/permutation.hpp"

#include "support/datasets.hpp"

namespace tessera {
namespace {

using testing::ElementsAre;
using Ends = std::pair<VertexId, VertexId>;

/// Every edge from j to i has the features 100 i + j and 1.
Dataset marked(const Graph& graph) {
  Dataset dataset = test::graph_alone("marked", graph);
  auto features = std::make_shared<Matrix<float>>(graph.num_edges(), 2);
  for (VertexId i = 0; i < graph.num_rows(); ++i) {
    for (EdgeOffset e = graph.row_offsets()[i]; e < graph.row_offsets()[i + 1]; ++e) {
      (*features)(e, 0) = static_cast<float>(100 * i + graph.col_indices()[e]);
      (*features)(e, 1) = 1;
    }
  }
  dataset.edge_features.matrix = std::move(features);
  return dataset;
}

std::map<Ends, float> marks(const Dataset& dataset) {
  dataset.validate();
  std::map<Ends, float> found;
  const Graph& graph = dataset.graph;
  for (VertexId i = 0; i < graph.num_rows(); ++i) {
    for (EdgeOffset e = graph.row_offsets()[i]; e < graph.row_offsets()[i + 1]; ++e) {
      found[{i, graph.col_indices()[e]}] = (*dataset.edge_features.matrix)(e, 0);
    }
  }
  return found;
}

/// 0 <- 1, 0 <- 2, 1 <- 0, 2 <- 2.
Graph small() {
  return from_coo(3, 3, std::vector<VertexId>{2, 0, 0, 1}, std::vector<VertexId>{2, 1, 2, 0}, {},
                  {.keep_edge_ids = true});
}

TEST(ChangeEdges, FeaturesGoWithTheirEdges) {
  Dataset dataset = marked(small());
  const NewEdges added = change_edges(dataset, [](const Graph& g) { return transposed(g); });
  EXPECT_EQ(added.reversed + added.zero, 0);
  EXPECT_EQ(marks(dataset),
            (std::map<Ends, float>{{{1, 0}, 1}, {{2, 0}, 2}, {{0, 1}, 100}, {{2, 2}, 202}}));
  // The order of the user: 2 <- 2, 0 <- 1, 0 <- 2, 1 <- 0, all of them turned round.
  EXPECT_THAT(dataset.graph.edge_ids().span(), ElementsAre(3, 1, 2, 0));
  change_edges(dataset, [](const Graph& g) { return without_self_loops(g); });
  EXPECT_EQ(marks(dataset).size(), 3u);
  EXPECT_EQ(marks(dataset).count({2, 2}), 0u);
  EXPECT_THAT(dataset.graph.edge_ids().span(), ElementsAre(-1, 1, 2, 0));
}

TEST(ChangeEdges, NewEdgesHaveTheFeaturesOfTheirReverseOrNone) {
  Dataset dataset = marked(small());
  NewEdges added = change_edges(dataset, [](const Graph& g) { return symmetrised(g); });
  EXPECT_EQ(added.reversed, 1);
  EXPECT_EQ(added.zero, 0);
  EXPECT_EQ(
      marks(dataset),
      (std::map<Ends, float>{{{0, 1}, 1}, {{1, 0}, 100}, {{0, 2}, 2}, {{2, 0}, 2}, {{2, 2}, 202}}));
  added = change_edges(dataset, [](const Graph& g) { return with_self_loops(g); });
  EXPECT_EQ(added.reversed, 0);
  EXPECT_EQ(added.zero, 2);
  EXPECT_EQ(marks(dataset).at({1, 1}), 0);
  EXPECT_EQ(marks(dataset).at({2, 2}), 202);
}

TEST(ChangeEdges, OrdersMoveThemEvenWhereEdgesAreRepeated) {
  const Graph twice = from_edges(3, std::vector<VertexId>{1, 1, 0}, std::vector<VertexId>{0, 0, 2},
                                 {}, {Duplicates::keep});
  ASSERT_TRUE(twice.has_repeated_edges());
  Dataset dataset = marked(twice);
  auto features = std::make_shared<Matrix<float>>(3, 1);
  for (std::int64_t e = 0; e < 3; ++e) (*features)(e, 0) = static_cast<float>(e);
  dataset.edge_features.matrix = features;
  dataset.edge_features.names = Names({"length"});
  const Permutation turn(std::vector<VertexId>{2, 0, 1});
  const Dataset moved = permuted(dataset, turn);
  // Vertex 2 is the first now, then 0, whose two edges keep their order.
  EXPECT_THAT(std::span(moved.edge_features.matrix->data(), 3), ElementsAre(2, 0, 1));
  EXPECT_EQ(permuted(moved, turn.inverse()), dataset);
}

TEST(ChangeEdges, PrunedEdgesTakeTheirFeaturesAway) {
  Dataset dataset = marked(test::random_graph({33, 33, 300, true, false}, 3));
  const std::map<Ends, float> before = marks(dataset);
  change_edges(dataset, [](const Graph& g) {
    return reorder::prune_nm(g, reorder::NmPattern::parse("1:2:4")).graph;
  });
  EXPECT_FALSE(dataset.graph.has_edge_ids());
  EXPECT_LT(marks(dataset).size(), before.size());
  for (const auto& [ends, mark] : marks(dataset)) EXPECT_EQ(before.at(ends), mark);
}

TEST(ChangeEdges, WithoutFeaturesTheGraphAloneChanges) {
  Dataset dataset = test::graph_alone("plain", small());
  const NewEdges added = change_edges(dataset, [](const Graph& g) { return with_self_loops(g); });
  EXPECT_EQ(added.zero, 0);
  EXPECT_EQ(dataset.graph, with_self_loops(small()));
  EXPECT_EQ(dataset.edge_features.matrix, nullptr);
}

TEST(ChangeEdges, AChangeThatLosesTheEdgesIsAnError) {
  Dataset dataset = marked(small());
  EXPECT_THROW(change_edges(dataset, [](const Graph& g) { return g.with_edge_ids({}); }), Error);
}

}  // namespace
}  // namespace tessera
