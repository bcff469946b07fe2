// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/row_order.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/plan/tune.hpp"
#include "ops/spmm/trial.hpp"
#include "support/odd_graphs.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/device.hpp"
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

/// Always the same, so that its order is looked for once.
Graph shuffled_communities() {
  static const Graph shuffled = [] {
    const Graph graph = generate::build(generate::BlockModel{
        .vertices = 6000, .communities = 90, .mean_degree = 40, .inside = 0.95, .seed = 5});
    return permuted(graph, Permutation::random(graph.num_rows(), 3));
  }();
  return shuffled;
}

/// As the registry knows the kernel, on whatever GPU.
SpmmKernel ordered_kernel() {
  SpmmKernel kernel = {};
  kernel.info.name = "spmm/cuda/ordered_64";
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = [](const SpmmProblem& problem) -> std::string {
    if (problem.reduction == Reduction::max) return "sums and means only";
    return why_not_ordered(problem);
  };
  return kernel;
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

/// What shuffling took from windows comes back.
TEST(RowOrder, BringsRowsTogetherThatShareColumns) {
  const auto columns_of_windows = [](const Graph& graph) {
    std::size_t columns = 0;
    for (VertexId first = 0; first < graph.num_rows(); first += 64) {
      std::set<VertexId> distinct;
      for (VertexId row = first; row < std::min(first + 64, graph.num_rows()); ++row) {
        distinct.merge(
            std::set<VertexId>(graph.neighbours(row).begin(), graph.neighbours(row).end()));
      }
      columns += distinct.size();
    }
    return columns;
  };
  const Graph graph = shuffled_communities();
  EXPECT_LT(2 * columns_of_windows(row_order(problem_on(graph))->graph), columns_of_windows(graph));
}

TEST(RowOrder, KeepsEdgesThatAreRepeated) {
  const Graph graph = testing::random_coo(60, 60, 900, 4).build({.duplicates = Duplicates::keep});
  ASSERT_TRUE(graph.has_repeated_edges());
  const auto order = row_order(problem_on(graph));
  for (VertexId i = 0; i < 60; ++i) {
    EXPECT_EQ(columns_of(order->graph, i), columns_of(graph, order->rows[i]));
  }
}

TEST(RowOrder, IsLookedForWherePlannedEpochsCanMakeUpForIt) {
  const SpmmProblem problem = problem_on(shuffled_communities());
  const std::vector<SpmmKernel> kernels = {ordered_kernel()};
  PlanOptions options;
  options.device = problem.device;
  EXPECT_FALSE(may_pay(problem, options, kernels)) << "a hundred epochs";
  options.epochs = 100'000'000;
  EXPECT_TRUE(may_pay(problem, options, kernels));
  options.epochs = 1;
  options.kernel = "spmm/cuda/ordered_64";
  EXPECT_TRUE(may_pay(problem, options, kernels));
  SpmmProblem on_cpu = problem;
  on_cpu.device = {};
  EXPECT_FALSE(may_pay(on_cpu, options, kernels));
}

TEST(RowOrder, SaysAfterHowManyEpochsAnotherOnePaysAtTheEarliest) {
  SpmmProblem problem = problem_on(shuffled_communities());
  problem.reorders = false;
  const std::string why = why_not_ordered(problem);
  const std::size_t after = why.find("after ");
  ASSERT_NE(after, std::string::npos) << why;
  const std::int64_t epochs = std::stoll(why.substr(after + 6));
  const std::vector<SpmmKernel> kernels = {ordered_kernel()};
  PlanOptions options;
  options.device = problem.device;
  options.epochs = epochs + 1;
  EXPECT_TRUE(may_pay(problem, options, kernels)) << why;
  options.epochs = epochs - 1;
  EXPECT_FALSE(may_pay(problem, options, kernels)) << why;
  problem.features = 0;
  EXPECT_NE(why_not_ordered(problem).find("nothing to gain"), std::string::npos);
}

TEST(RowOrder, OfFewRowsTakesOneThread) {
  const auto seconds = [](VertexId vertices) {
    return predicted_order_seconds(
        generate::build(generate::ErdosRenyi{.vertices = vertices, .edges = 20000}));
  };
  EXPECT_DOUBLE_EQ(seconds(500), seconds(4000));
  EXPECT_DOUBLE_EQ(seconds(4000), nominal_threads * seconds(70000));
}

TEST(RowOrder, IsNotLookedForWhereNoKernelCouldUseIt) {
  SpmmProblem problem = problem_on(shuffled_communities());
  problem.reorders = false;
  const std::vector<SpmmKernel> kernels = {ordered_kernel()};
  PlanOptions many;
  many.device = problem.device;
  many.epochs = 100'000'000;
  ASSERT_TRUE(may_pay(problem, many, kernels));
  EXPECT_FALSE(may_pay(problem, many, {}));
  PlanOptions options = many;
  options.strict = true;
  EXPECT_FALSE(may_pay(problem, options, kernels));
  options = many;
  options.exact_nonfinite = true;
  EXPECT_FALSE(may_pay(problem, options, kernels));
  options = many;
  options.kernel = "spmm/cuda/tall_64";
  EXPECT_FALSE(may_pay(problem, options, kernels));
  options.kernel = "spmm/cuda/tall*";
  EXPECT_FALSE(may_pay(problem, options, kernels));
  options.kernel = "spmm/cuda/*";
  EXPECT_TRUE(may_pay(problem, options, kernels));
  problem.reduction = Reduction::max;
  EXPECT_FALSE(may_pay(problem, many, kernels)) << "the kernel refuses";
}

TEST(RowOrder, IsLookedForWhereTheStoredKernelHasOne) {
  const std::int64_t any_epochs[] = {1, 100'000'000};
  for (const bool ordered : {true, false}) {
    SpmmProblem problem = problem_on(testing::random_graph(40, 40, 90, 2, false));
    problem.device = {};
    const auto store = std::make_shared<PlanStore>();
    PlanOptions options;
    options.store = store;
    EXPECT_FALSE(should_reorder(problem, options)) << "nothing stored";
    store->remember(
        {plan_key(SpmmTrial::op(problem), problem.graph, SpmmTrial::details(problem), options),
         ordered ? "spmm/cuda/ordered_64" : "spmm/cuda/tall_64",
         {}});
    for (const std::int64_t epochs : any_epochs) {
      options.epochs = epochs;
      EXPECT_EQ(should_reorder(problem, options), ordered) << epochs;
    }
  }
}

/// A plan that was stored for many epochs is used for few, and the other way round.
TEST(RowOrder, OnDeviceStaysAsStored) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  SpmmOptions options;
  options.device = {DeviceKind::cuda, 0};
  options.features = 128;
  options.edge_values_at_run = false;
  const std::int64_t any_epochs[] = {1, 100'000'000};
  for (const KernelInfo& info : kernels("spmm")) {
    const std::string& kernel = info.name;
    if (!kernel.starts_with("spmm/cuda/ordered") && kernel != "spmm/cuda/hybrid_64") continue;
    const Graph graph = shuffled_communities();
    SpmmProblem problem = problem_on(graph);
    problem.edge_values_at_run = false;
    options.store = std::make_shared<PlanStore>();
    for (const SpmmPass pass : {SpmmPass::forward, SpmmPass::backward}) {
      problem.pass = pass;
      options.store->remember(
          {plan_key(SpmmTrial::op(problem), graph, SpmmTrial::details(problem), options),
           kernel,
           {}});
    }
    for (const std::int64_t epochs : any_epochs) {
      options.epochs = epochs;
      EXPECT_EQ(plan_spmm(graph, options).kernel().name, kernel) << epochs;
    }
  }
}

/// Else the kernel that is chosen would depend on the machine around the GPU.
TEST(RowOrder, IsExpectedToTakeAsLongForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(400, 400, 9000, 2, false);
  std::vector<double> seconds;
  for (const int threads : {1, 3}) {
    const testing::ThreadScope scope(threads);
    seconds.push_back(predicted_order_seconds(graph));
  }
  EXPECT_EQ(seconds[0], seconds[1]);
}

TEST(RowOrder, NeedsRowsAndColumnsOfTheSameVertices) {
  SpmmProblem problem = problem_on(testing::random_graph(30, 40, 90, 2, false));
  // No number of epochs makes up for what cannot be.
  for (const bool reorders : {true, false}) {
    problem.reorders = reorders;
    EXPECT_NE(why_not_ordered(problem).find("not the same vertices"), std::string::npos);
  }
  problem.reorders = true;
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
  explanation.candidates = {{"spmm/cuda/tall_64", "chosen", 70, 0},
                            {"spmm/cuda/ordered_64", "sums and means only", 0, 0}};
  EXPECT_EQ(note_on_order(problem, explanation, options), "") << "nobody looked for one";
}

}  // namespace
}  // namespace tessera::ops
