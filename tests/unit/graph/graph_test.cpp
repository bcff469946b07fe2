// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/graph.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

template <class T>
SharedArray<T> array(std::vector<T> values) {
  return SharedArray<T>(std::move(values));
}

/// Row 0: columns 1, 2; row 1: none; row 2: column 0.
Graph small_graph() {
  return Graph(3, 3, array<EdgeOffset>({0, 2, 2, 3}), array<VertexId>({1, 2, 0}),
               array<float>({2, 3, 5}));
}

void expect_bad(const Graph& graph, const std::string& part_of_message) {
  testing::expect_error(ErrorCode::bad_data, {part_of_message}, [&] { graph.validate(); });
}

TEST(Graph, TheDefaultHasNoVertices) {
  const Graph graph;
  graph.validate();
  EXPECT_EQ(graph.num_rows(), 0);
  EXPECT_EQ(graph.num_edges(), 0);
  EXPECT_TRUE(graph.is_square());
  EXPECT_FALSE(graph.is_weighted());
  EXPECT_EQ(graph.csc().col_offsets.size(), 1);
  EXPECT_EQ(graph, Graph());
}

TEST(Graph, ReadsRowsAndWeights) {
  const Graph graph = small_graph();
  graph.validate();
  EXPECT_EQ(graph.degree(0), 2);
  EXPECT_EQ(graph.degree(1), 0);
  EXPECT_EQ(graph.neighbours(0)[1], 2);
  EXPECT_EQ(graph.weight(0, 1), 3);
  const Graph scaled = graph.with_scales(array<float>({10, 1, 100}), array<float>({7, 1, 0.5f}));
  EXPECT_EQ(scaled.weight(0, 1), 15);
  EXPECT_EQ(scaled.weight(2, 2), 3500);
  EXPECT_EQ(scaled.with_values({}).weight(2, 2), 700);
}

TEST(Graph, CscListsTheTargetsOfEverySource) {
  const Graph graph = small_graph();
  const Csc& csc = graph.csc();
  EXPECT_EQ(csc.col_offsets, array<EdgeOffset>({0, 1, 2, 3}));
  EXPECT_EQ(csc.row_indices, array<VertexId>({2, 0, 0}));
  EXPECT_EQ(csc.csr_positions, array<EdgeOffset>({2, 0, 1}));
}

TEST(Graph, CscOfARectangularGraphWithEmptyColumns) {
  const Graph graph(2, 5, array<EdgeOffset>({0, 2, 4}), array<VertexId>({1, 4, 0, 4}));
  EXPECT_EQ(graph.csc().col_offsets, array<EdgeOffset>({0, 1, 2, 2, 2, 4}));
  EXPECT_EQ(graph.csc().row_indices, array<VertexId>({1, 0, 0, 1}));
}

TEST(Graph, CopiesShareOneCsc) {
  const Graph graph = small_graph();
  const Graph scaled = graph.with_scales(array<float>({1, 2, 3}), {});
  const Graph other_values = graph.with_values(array<float>({1, 1, 1}));
  EXPECT_EQ(&graph.csc(), &scaled.csc());
  EXPECT_EQ(&graph.csc(), &other_values.csc());
}

TEST(Graph, ManyThreadsMayAskForTheCscAtOnce) {
  const Graph graph = testing::random_graph(500, 500, 20000, 3);
  std::vector<const Csc*> seen(8);
  std::vector<std::thread> threads;
  for (auto& slot : seen) threads.emplace_back([&] { slot = &graph.csc(); });
  for (auto& thread : threads) thread.join();
  for (const Csc* csc : seen) EXPECT_EQ(csc, seen[0]);
  EXPECT_EQ(seen[0]->row_indices.size(), graph.num_edges());
}

TEST(Graph, EqualityLooksAtEverything) {
  const Graph graph = small_graph();
  EXPECT_EQ(graph, small_graph());
  EXPECT_NE(graph, graph.with_values({}));
  EXPECT_NE(graph, graph.with_values(array<float>({2, 3, 6})));
  EXPECT_NE(graph, graph.with_scales(array<float>({1, 1, 1}), {}));
  EXPECT_NE(graph, graph.with_scales({}, array<float>({1, 1, 1})));
  EXPECT_NE(graph, graph.with_edge_ids(array<EdgeOffset>({0, 1, 2})));
  EXPECT_NE(graph, Graph(3, 4, graph.row_offsets(), graph.col_indices(), graph.values()));
}

TEST(Graph, WrongSizesAreRefusedAtOnce) {
  EXPECT_THROW(Graph(3, 3, array<EdgeOffset>({0, 0, 0}), {}), Error);
  EXPECT_THROW(Graph(-1, 3, array<EdgeOffset>({}), {}), Error);
  EXPECT_THROW(small_graph().with_values(array<float>({1})), Error);
  EXPECT_THROW(small_graph().with_scales(array<float>({1}), {}), Error);
  EXPECT_THROW(small_graph().with_scales({}, array<float>({1})), Error);
}

TEST(Graph, ValidateNamesWhatIsWrong) {
  const auto cols = array<VertexId>({1, 2, 0});
  expect_bad(Graph(3, 3, array<EdgeOffset>({1, 2, 2, 3}), cols), "start at 1");
  expect_bad(Graph(3, 3, array<EdgeOffset>({0, 2, 2, 4}), cols), "end at 4");
  expect_bad(Graph(3, 3, array<EdgeOffset>({0, 3, 2, 3}), cols), "fall from 3 to 2 at row 1");
  expect_bad(Graph(3, 3, array<EdgeOffset>({0, 9, 9, 3}), cols), "fall from 9 to 3 at row 2");
  const auto offsets = array<EdgeOffset>({0, 2, 2, 3});
  expect_bad(Graph(3, 3, offsets, array<VertexId>({1, 3, 0})), "column 3, outside [0, 3)");
  expect_bad(Graph(3, 3, offsets, array<VertexId>({1, 2, -1})), "column -1");
  expect_bad(Graph(3, 3, offsets, array<VertexId>({2, 2, 0})), "row 0 lists column 2 after 2");
  expect_bad(Graph(3, 3, offsets, array<VertexId>({2, 1, 0})), "row 0 lists column 1 after 2");
  expect_bad(Graph(3, 3, offsets, cols, array<float>({1, 2})), "values has 2 entries");
  expect_bad(small_graph().with_edge_ids(array<EdgeOffset>({0, 3})), "edge_ids[1] is 3");
  expect_bad(small_graph().with_edge_ids(array<EdgeOffset>({-2})), "edge_ids[0] is -2");
}

TEST(Graph, PrintsOneLine) {
  std::ostringstream out;
  out << small_graph() << " | " << Graph(2, 5, array<EdgeOffset>({0, 0, 0}), {});
  EXPECT_EQ(out.str(),
            "graph of 3 vertices, 3 edges, values | "
            "graph of 2 targets x 5 sources, 0 edges, unweighted");
}

}  // namespace
}  // namespace tessera
