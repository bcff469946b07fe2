// SPDX-License-Identifier: Apache-2.0
// Graphs that keep repeated edges: each counts, as in PyTorch Geometric.
#include <gtest/gtest.h>

#include <vector>

#include "tessera/graph/build.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/spmm.hpp"

#include "support/expect_error.hpp"

namespace tessera {
namespace {

using testing::expect_error;
using Vertices = std::vector<VertexId>;

Graph repeated() {
  BuildOptions options;
  options.duplicates = Duplicates::keep;
  options.keep_edge_ids = true;
  // Target 1 has source 2 twice and source 0 once; target 0 has source 1.
  return from_edges(3, Vertices{2, 0, 2, 1}, Vertices{1, 1, 1, 0}, std::vector<float>{5, 7, 11, 2},
                    options);
}

TEST(RepeatedEdges, AreKeptInTheOrderGiven) {
  const Graph graph = repeated();
  graph.validate();
  EXPECT_TRUE(graph.has_repeated_edges());
  EXPECT_EQ(graph.num_edges(), 4);
  EXPECT_EQ(std::vector<VertexId>(graph.col_indices().begin(), graph.col_indices().end()),
            (Vertices{1, 0, 2, 2}));
  EXPECT_EQ(std::vector<float>(graph.values().begin(), graph.values().end()),
            (std::vector<float>{2, 7, 5, 11}));
  EXPECT_EQ(std::vector<EdgeOffset>(graph.edge_ids().begin(), graph.edge_ids().end()),
            (std::vector<EdgeOffset>{2, 1, 3, 0}));
}

TEST(RepeatedEdges, AreNotMarkedWhereThereAreNone) {
  BuildOptions options;
  options.duplicates = Duplicates::keep;
  EXPECT_FALSE(from_edges(3, Vertices{2, 0}, Vertices{1, 1}, {}, options).has_repeated_edges());
  EXPECT_FALSE(from_edges(3, Vertices{0, 2}, Vertices{1, 1}, {}, options).has_repeated_edges());
}

TEST(RepeatedEdges, CountInSumsMeansAndTheirGradients) {
  const Graph graph = repeated().with_values({});
  Matrix<float> x(3, 1), y(3, 1), grad(3, 1);
  for (int i = 0; i < 3; ++i) x(i, 0) = static_cast<float>(10 * i + 1);
  ops::SpmmOptions options;
  options.features = 1;
  options.backward = true;
  ops::run(ops::plan_spmm(graph, options), {x}, {y});
  EXPECT_EQ(y(1, 0), 1 + 21 + 21);
  options.reduction = ops::Reduction::mean;
  const ops::SpmmPlan mean = ops::plan_spmm(graph, options);
  ops::run(mean, {x}, {y});
  EXPECT_FLOAT_EQ(y(1, 0), 43.0f / 3);
  Matrix<float> ones(3, 1, 1.0f);
  ops::run_backward(mean, {ones}, {grad});
  EXPECT_FLOAT_EQ(grad(2, 0), 2.0f / 3);
  EXPECT_FLOAT_EQ(grad(1, 0), 1);
}

TEST(RepeatedEdges, CountInAttention) {
  const Graph graph = repeated();
  ops::AttentionOptions options;
  options.features = 1;
  Matrix<float> scores(3, 1, 0.0f), value(3, 1), out(3, 1);
  for (int i = 0; i < 3; ++i) value(i, 0) = static_cast<float>(i);
  ops::AttentionInputs inputs;
  inputs.target = scores;
  inputs.source = scores;
  inputs.value = value;
  ops::run(ops::plan_attention(graph, options), inputs, {out});
  EXPECT_FLOAT_EQ(out(1, 0), 4.0f / 3);
}

TEST(RepeatedEdges, HaveNoSingleWinner) {
  ops::SpmmOptions options;
  options.features = 1;
  options.reduction = ops::Reduction::max;
  expect_error(ErrorCode::unsupported, {"no single winner"},
               [&] { ops::plan_spmm(repeated(), options); });
}

}  // namespace
}  // namespace tessera
