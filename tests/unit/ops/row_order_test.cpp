// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/row_order.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/permutation.hpp"

namespace tessera::ops {
namespace {

std::vector<VertexId> columns_of(const Graph& graph, VertexId row) {
  const auto columns = graph.col_indices().span();
  return {columns.begin() + graph.row_offsets()[row],
          columns.begin() + graph.row_offsets()[row + 1]};
}

SpmmProblem problem_on(Graph graph, SpmmPass pass = SpmmPass::forward) {
  SpmmProblem problem;
  problem.graph = std::move(graph);
  problem.features = 128;
  problem.pass = pass;
  problem.device = {DeviceKind::cuda, 0};
  problem.reorders = true;
  return problem;
}

Graph shuffled_communities() {
  const Graph graph = generate::build(generate::BlockModel{
      .vertices = 20000, .communities = 300, .mean_degree = 40, .inside = 0.95, .seed = 5});
  return permuted(graph, Permutation::random(graph.num_rows(), 3));
}

TEST(RowOrder, HasEveryRowOnceWithItsColumns) {
  const Graph directed = testing::random_graph(700, 700, 9000, 11, false);
  for (const SpmmPass pass : {SpmmPass::forward, SpmmPass::backward}) {
    const Graph rows = pass == SpmmPass::forward ? directed : transposed(directed);
    const auto order = row_order(problem_on(directed, pass));
    ASSERT_EQ(order->rows.size(), 700);
    std::vector<int> times(700);
    for (VertexId i = 0; i < 700; ++i) {
      const VertexId row = order->rows[i];
      ++times[static_cast<std::size_t>(row)];
      ASSERT_EQ(columns_of(order->graph, i), columns_of(rows, row)) << "row " << row;
    }
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), 700);
  }
}

TEST(RowOrder, IsFoundOnceForBothPasses) {
  const Graph graph = shuffled_communities();
  const auto forward = row_order(problem_on(graph));
  const auto backward = row_order(problem_on(graph, SpmmPass::backward));
  EXPECT_EQ(forward->rows.data(), backward->rows.data());
  EXPECT_EQ(row_order(problem_on(graph)), forward);
}

/// What shuffling took from windows comes back, so that more of them suit tensor cores.
TEST(RowOrder, MakesWindowsCheaper) {
  const SpmmProblem problem = problem_on(shuffled_communities());
  const HybridPolicy as_it_is = {"as it is", tall_policies[0]};
  const HybridPolicy ordered = {"ordered", tall_policies[0], true};
  const double before = predict_hybrid_us(problem, as_it_is, h200_traits());
  EXPECT_LT(predict_hybrid_us(problem, ordered, h200_traits()), 0.9 * before);
}

TEST(RowOrder, IsLookedForWherePlannedEpochsCanMakeUpForIt) {
  const SpmmProblem problem = problem_on(shuffled_communities());
  PlanOptions options;
  EXPECT_FALSE(may_pay(problem, options)) << "a hundred epochs";
  options.epochs = 100'000'000;
  EXPECT_TRUE(may_pay(problem, options));
  options.epochs = 1;
  options.kernel = "spmm/cuda/ordered_64";
  EXPECT_TRUE(may_pay(problem, options));
  SpmmProblem on_cpu = problem;
  on_cpu.device = {};
  EXPECT_FALSE(may_pay(on_cpu, options));
}

TEST(RowOrder, NeedsRowsAndColumnsOfTheSameVertices) {
  SpmmProblem problem = problem_on(testing::random_graph(30, 40, 90, 2, false));
  EXPECT_NE(why_not_ordered(problem), "");
  problem.graph = testing::random_graph(40, 40, 90, 2, false);
  EXPECT_EQ(why_not_ordered(problem), "");
  problem.reorders = false;
  EXPECT_NE(why_not_ordered(problem), "");
}

TEST(RowOrder, IsExplainedByTheRunsThatMakeUpForIt) {
  const SpmmProblem problem = problem_on(shuffled_communities());
  PlanOptions options;
  options.epochs = 1'000'000;
  Explanation explanation;
  explanation.candidates = {{"spmm/cuda/tall_64", "slower by 20.0 us", 100, 0},
                            {"spmm/cuda/ordered_64", "chosen", 80, 0}};
  EXPECT_NE(note_on_order(problem, explanation, options).find("runs make up for at 20.0 us less"),
            std::string::npos);
  explanation.candidates = {{"spmm/cuda/tall_64", "chosen", 70, 0},
                            {"spmm/cuda/ordered_64", "slower by 10.0 us", 80, 0}};
  EXPECT_NE(note_on_order(problem, explanation, options).find("the old one stays"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::ops
