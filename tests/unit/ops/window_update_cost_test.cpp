// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "core/device_traits.hpp"
#include "ops/aggregate_update/cuda/fused/cost.hpp"
#include "ops/aggregate_update/cuda/windows/cost.hpp"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"

/// What windows that are multiplied by weights should take, before a GPU is asked.
namespace tessera::ops {
namespace {

AggregateUpdateProblem problem_on(const Graph& graph, std::int64_t width) {
  AggregateUpdateProblem problem{graph, {}, SpmmPass::forward};
  problem.options.in = problem.options.out = width;
  problem.options.precision = Precision::bf16;
  return problem;
}

double us(const AggregateUpdateProblem& problem) {
  return predicted_window_update_us(problem, window_update_policies[0], h200_traits());
}

TEST(WindowUpdateCost, GrowsWithWidthsAndWithWhatIsAskedFor) {
  const Graph graph =
      generate::build(generate::Molecules{.graphs = 8000, .mean_vertices = 25, .seed = 1}).graph;
  const AggregateUpdateProblem plain = problem_on(graph, 64);
  EXPECT_LT(us(plain), us(problem_on(graph, 96)));
  AggregateUpdateProblem kept = plain;
  kept.options.keep_aggregated = true;
  EXPECT_LT(us(plain), us(kept));
  AggregateUpdateProblem root = plain;
  root.options.root = true;
  EXPECT_LT(us(plain), us(root));
}

/// As measured on an H200.
TEST(WindowUpdateCost, IsBelowThatOfRows) {
  const Graph graph =
      generate::build(generate::Molecules{.graphs = 68585, .mean_vertices = 25, .seed = 1}).graph;
  for (const bool kept : {false, true}) {
    for (const std::int64_t width : {64, 96}) {
      AggregateUpdateProblem problem = problem_on(graph, width);
      problem.options.keep_aggregated = kept;
      EXPECT_LT(us(problem), predicted_fused_update_us(problem, h200_traits())) << width;
    }
  }
}

/// GPUs that have both take the units that are made for it.
TEST(WindowUpdateCost, IsHigherOnMmaSync) {
  const Graph graph =
      generate::build(generate::Molecules{.graphs = 8000, .mean_vertices = 25, .seed = 1}).graph;
  for (const std::int64_t width : {8, 64, 128}) {
    const AggregateUpdateProblem problem = problem_on(graph, width);
    EXPECT_LT(us(problem),
              predicted_window_update_us(problem, window_update_policies[1], h200_traits()));
  }
}

TEST(WindowUpdateCost, FollowsTheColumnsOfWindowsNotTheirEdges) {
  const Graph communities = generate::build(
      generate::BlockModel{.vertices = 40000, .communities = 400, .mean_degree = 20, .seed = 2});
  const Graph random =
      generate::build(generate::ErdosRenyi{.vertices = 40000, .edges = 800000, .seed = 2});
  EXPECT_LT(us(problem_on(communities, 64)), us(problem_on(random, 64)));
}

TEST(WindowUpdateCost, TakesRowsForColumnsWhereWindowsHaveEnoughOfThem) {
  const Graph molecules =
      generate::build(generate::Molecules{.graphs = 8000, .mean_vertices = 25, .seed = 1}).graph;
  const auto with_own = [](const Graph& graph) {
    AggregateUpdateProblem problem = problem_on(graph, 64);
    problem.options.self = true;
    return problem;
  };
  EXPECT_TRUE(rows_may_be_columns(with_own(molecules)));
  EXPECT_FALSE(rows_may_be_columns(problem_on(molecules, 64)));
  // Rows with a factor come when their window ends.
  AggregateUpdateProblem scaled = with_own(molecules);
  scaled.options.self_scale = true;
  EXPECT_FALSE(rows_may_be_columns(scaled));
  EXPECT_LT(us(with_own(molecules)), us(scaled));
  // All rows use the same 16 columns.
  constexpr VertexId vertices = 4096;
  std::vector<VertexId> sources;
  std::vector<VertexId> targets;
  for (VertexId row = 0; row < vertices; ++row) {
    for (VertexId hub = 0; hub < 16; ++hub) {
      sources.push_back(hub);
      targets.push_back(row);
    }
  }
  EXPECT_FALSE(rows_may_be_columns(with_own(from_edges(vertices, sources, targets))));
}

}  // namespace
}  // namespace tessera::ops
