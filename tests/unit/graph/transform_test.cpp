// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/transform.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using Vertices = std::vector<VertexId>;
using Ids = std::vector<EdgeOffset>;
using testing::entries_of;

SharedArray<EdgeOffset> ids(Ids values) { return SharedArray<EdgeOffset>(std::move(values)); }
SharedArray<float> floats(std::vector<float> values) {
  return SharedArray<float>(std::move(values));
}

/// Entries (2, 0) = 5, (0, 2) = 7, (1, 1) = 3, given in this order with ids.
Graph small_graph() {
  return from_coo(3, 3, Vertices{2, 0, 1}, Vertices{0, 2, 1}, std::vector<float>{5, 7, 3},
                  {.keep_edge_ids = true});
}

TEST(SelfLoops, AreAddedWhereMissingAndKeptElsewhere) {
  const Graph looped = with_self_loops(small_graph());
  looped.validate();
  EXPECT_EQ(entries_of(looped),
            (std::map<std::pair<VertexId, VertexId>, float>{
                {{0, 0}, 1}, {{0, 2}, 7}, {{1, 1}, 3}, {{2, 0}, 5}, {{2, 2}, 1}}));
  EXPECT_EQ(looped.edge_ids(), ids({3, 1, 2}));
  EXPECT_EQ(with_self_loops(looped), looped);
}

TEST(SelfLoops, LeaveAnUnweightedGraphUnweighted) {
  const Graph looped = with_self_loops(testing::path_graph(3));
  EXPECT_FALSE(looped.has_values());
  EXPECT_EQ(looped.num_edges(), 7);
  EXPECT_EQ(with_self_loops(Graph()), Graph());
}

TEST(SelfLoops, AreRemovedAndTheirIdsDropped) {
  const Graph graph = small_graph().with_scales(floats({1, 2, 3}), floats({4, 5, 6}));
  const Graph loop_free = without_self_loops(graph);
  loop_free.validate();
  EXPECT_EQ(loop_free.num_edges(), 2);
  EXPECT_EQ(loop_free.edge_ids(), ids({1, 0, -1}));
  EXPECT_EQ(loop_free.weight(2, 1), 3 * 5 * 4);
  EXPECT_EQ(without_self_loops(loop_free), loop_free);
}

TEST(SelfLoops, AreAllRemovedWhereTheyRepeat) {
  const Graph graph = from_coo(3, 3, Vertices{0, 0, 0, 1, 2, 2}, Vertices{0, 0, 1, 2, 2, 2}, {},
                               {.duplicates = Duplicates::keep});
  const Graph loop_free = without_self_loops(graph);
  loop_free.validate();
  EXPECT_TRUE(loop_free.has_repeated_edges());
  EXPECT_EQ(loop_free.num_edges(), 2);
  EXPECT_EQ(loop_free.degree(2), 0);
}

TEST(SelfLoops, NeedASquareGraphAndNoScales) {
  const Graph wide = from_coo(2, 3, {}, {});
  EXPECT_THROW(with_self_loops(wide), Error);
  EXPECT_THROW(without_self_loops(wide), Error);
  EXPECT_THROW(with_self_loops(small_graph().with_scales(floats({1, 2, 3}), {})), Error);
}

TEST(Symmetrised, HasEachEdgeBothWaysOnce) {
  const Graph graph = from_coo(4, 4, Vertices{0, 1, 2, 2}, Vertices{1, 0, 1, 2},
                               std::vector<float>{1, 2, 3, 4}, {.keep_edge_ids = true});
  const Graph both = symmetrised(graph);
  both.validate();
  EXPECT_EQ(entries_of(both),
            (std::map<std::pair<VertexId, VertexId>, float>{
                {{0, 1}, 1}, {{1, 0}, 1}, {{1, 2}, 1}, {{2, 1}, 1}, {{2, 2}, 1}}));
  EXPECT_EQ(both.edge_ids(), ids({0, 1, 3, 4}));
  EXPECT_EQ(both, symmetrised(both));
  EXPECT_THROW(symmetrised(from_coo(2, 3, {}, {})), Error);
}

TEST(Transposed, MovesValuesScalesAndIds) {
  const Graph graph = from_coo(2, 3, Vertices{0, 1, 1}, Vertices{2, 0, 2},
                               std::vector<float>{2, 3, 5}, {.keep_edge_ids = true})
                          .with_scales(floats({10, 20}), floats({1, 2, 4}));
  const Graph flipped = transposed(graph);
  flipped.validate();
  EXPECT_EQ(flipped.num_rows(), 3);
  EXPECT_EQ(flipped.num_cols(), 2);
  EXPECT_EQ(entries_of(flipped), (std::map<std::pair<VertexId, VertexId>, float>{
                                     {{0, 1}, 60}, {{2, 0}, 80}, {{2, 1}, 400}}));
  EXPECT_EQ(flipped.edge_ids(), ids({1, 0, 2}));
  EXPECT_EQ(transposed(flipped), graph);
}

TEST(InducedSubgraph, SelectsAndRenumbers) {
  const Graph graph = from_coo(4, 4, Vertices{0, 0, 3, 2, 1}, Vertices{3, 1, 0, 2, 0},
                               std::vector<float>{1, 2, 3, 4, 5}, {.keep_edge_ids = true})
                          .with_scales(floats({1, 10, 100, 1000}), floats({1, 1, 1, 2}));
  const Graph part = induced_subgraph(graph, Vertices{3, 0, 2});
  part.validate();
  EXPECT_EQ(entries_of(part), (std::map<std::pair<VertexId, VertexId>, float>{
                                  {{0, 1}, 3000}, {{1, 0}, 2}, {{2, 2}, 400}}));
  EXPECT_EQ(part.edge_ids(), ids({1, -1, 0, 2, -1}));
  EXPECT_EQ(induced_subgraph(graph, Vertices{0, 1, 2, 3}), graph);
  EXPECT_EQ(induced_subgraph(graph.with_edge_ids({}), Vertices{}), Graph());
}

TEST(InducedSubgraph, RefusesRepeatsStrangersAndRectangles) {
  const Graph graph = testing::path_graph(4);
  EXPECT_THROW(induced_subgraph(graph, Vertices{1, 1}), Error);
  EXPECT_THROW(induced_subgraph(graph, Vertices{4}), Error);
  EXPECT_THROW(induced_subgraph(graph, Vertices{-1}), Error);
  EXPECT_THROW(induced_subgraph(from_coo(2, 3, {}, {}), Vertices{0}), Error);
}

TEST(InducedSubgraph, KeepsRepeatedEdges) {
  const Graph graph = from_coo(3, 3, Vertices{0, 0, 0, 2}, Vertices{1, 1, 2, 0},
                               std::vector<float>{1, 2, 3, 4}, {.duplicates = Duplicates::keep});
  const Graph part = induced_subgraph(graph, Vertices{2, 1, 0});
  part.validate();
  EXPECT_TRUE(part.has_repeated_edges());
  EXPECT_EQ(part.num_edges(), 4);
  EXPECT_EQ(part.values(), floats({4, 3, 1, 2}));
}

TEST(SelectedRows, TakeRowsAsOftenAsTheyAreListed) {
  const Graph graph =
      from_coo(3, 5, Vertices{0, 0, 2}, Vertices{4, 1, 3}, std::vector<float>{1, 2, 3})
          .with_scales(floats({1, 10, 100}), floats({1, 1, 1, 1, 2}));
  const Graph part = selected_rows(graph, Vertices{2, 1, 0, 2});
  part.validate();
  EXPECT_EQ(part.num_cols(), 5);
  EXPECT_EQ(entries_of(part), (std::map<std::pair<VertexId, VertexId>, float>{
                                  {{0, 3}, 300}, {{2, 1}, 2}, {{2, 4}, 2}, {{3, 3}, 300}}));
  EXPECT_EQ(selected_rows(graph, Vertices{}).num_edges(), 0);
  EXPECT_THROW(selected_rows(graph, Vertices{0, 3}), Error);
  EXPECT_THROW(selected_rows(graph, Vertices{-1}), Error);
}

TEST(InPlace, IsTheGraphItselfWhereItLiesThere) {
  const Graph graph = small_graph();
  EXPECT_EQ(in_place(graph, {}).col_indices().data(), graph.col_indices().data());
}

}  // namespace
}  // namespace tessera
