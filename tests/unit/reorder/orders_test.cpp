// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/orders.hpp"

#include <gtest/gtest.h>

#include "tessera/graph/stats.hpp"

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::expect_error;
using Vertices = std::vector<VertexId>;

Vertices numbers_of(const Permutation& permutation) {
  return {permutation.new_to_old().begin(), permutation.new_to_old().end()};
}

/// 0 - 1 - 2 - 3, and 2 - 4; vertex 5 alone.
Graph small_tree() { return testing::undirected_graph(6, {{0, 1}, {1, 2}, {2, 3}, {2, 4}}); }

TEST(ByDegree, HighestFirstTiesInOrder) {
  EXPECT_EQ(numbers_of(reorder::by_degree(small_tree())), (Vertices{2, 1, 0, 3, 4, 5}));
}

TEST(ByDegree, IgnoresDirection) {
  // 1 -> 0, 1 -> 2: row 1 is empty, but vertex 1 has two neighbours.
  const Graph graph = from_edges(3, Vertices{1, 1}, Vertices{0, 2});
  EXPECT_EQ(numbers_of(reorder::by_degree(graph)), (Vertices{1, 0, 2}));
}

TEST(Bfs, StartsAtTheHighestDegreeOfEachComponent) {
  EXPECT_EQ(numbers_of(reorder::bfs(small_tree())), (Vertices{2, 1, 3, 4, 0, 5}));
  const Graph two = testing::undirected_graph(7, {{0, 1}, {6, 2}, {6, 3}, {6, 4}});
  EXPECT_EQ(numbers_of(reorder::bfs(two)), (Vertices{6, 2, 3, 4, 0, 1, 5}));
}

TEST(Rcm, StartsAtAnEndAndTakesLowDegreesFirst) {
  // Cuthill-McKee from the peripheral vertex 0 gives 0 1 2 3 4 after the lone 5.
  EXPECT_EQ(numbers_of(reorder::rcm(small_tree())), (Vertices{4, 3, 2, 1, 0, 5}));
}

TEST(Rcm, RestoresAShuffledPath) {
  for (const VertexId size : {2, 15, 16, 17, 31, 33, 1000}) {
    SCOPED_TRACE(::testing::Message() << size << " vertices, seed 6");
    const Graph shuffled = permuted(testing::path_graph(size), Permutation::random(size, 6));
    const Graph ordered = permuted(shuffled, reorder::rcm(shuffled));
    EXPECT_EQ(compute_stats(ordered).bandwidth, 1);
  }
}

TEST(Rcm, NarrowsAShuffledGrid) {
  const Graph shuffled = permuted(testing::grid_graph(40, 20), Permutation::random(800, 6));
  EXPECT_GT(compute_stats(shuffled).bandwidth, 400);
  EXPECT_LE(compute_stats(permuted(shuffled, reorder::rcm(shuffled))).bandwidth, 40);
}

TEST(Orders, CoverOddGraphs) {
  const std::vector<Graph> graphs{Graph(),
                                  from_coo(1, 1, {}, {}),
                                  from_coo(17, 17, {}, {}),
                                  from_coo(1, 1, Vertices{0}, Vertices{0}),
                                  testing::star_graph(100000),
                                  testing::random_graph(33, 33, 60, 3)};
  for (const Graph& graph : graphs) {
    for (const CatalogueEntry& method : reorder::methods()) {
      SCOPED_TRACE(::testing::Message() << graph << ", " << method.name);
      const Permutation order = reorder::compute(method.name, graph);
      ASSERT_EQ(order.size(), graph.num_rows());
      EXPECT_EQ(permuted(permuted(graph, order), order.inverse()), graph);
    }
  }
}

TEST(Orders, ComputeKnowsItsNames) {
  const Graph graph = small_tree();
  EXPECT_EQ(reorder::compute("degree", graph), reorder::by_degree(graph));
  EXPECT_EQ(reorder::compute("rcm", graph), reorder::rcm(graph));
  EXPECT_EQ(reorder::compute("bfs", graph), reorder::bfs(graph));
  EXPECT_EQ(reorder::compute("random", graph, 9), Permutation::random(6, 9));
  expect_error(ErrorCode::invalid_argument,
               {"'metis'", "degree, rcm, bfs, loa, communities, bisection, layout, random"},
               [&] { reorder::compute("metis", graph); });
}

TEST(Orders, RefuseRectangularGraphs) {
  const Graph wide = from_coo(2, 3, {}, {});
  for (const CatalogueEntry& method : reorder::methods()) {
    SCOPED_TRACE(method.name);
    expect_error(ErrorCode::invalid_argument, {"rectangular (2 targets x 3 sources)"},
                 [&] { reorder::compute(method.name, wide); });
  }
}

}  // namespace
}  // namespace tessera
