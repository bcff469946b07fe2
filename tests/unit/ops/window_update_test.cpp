// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "ops/aggregate_update/cuda/windows/cost.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"

namespace tessera::ops {
namespace {

AggregateUpdateProblem problem_on(const Graph& graph, std::int64_t width) {
  AggregateUpdateProblem problem{graph, {}, SpmmPass::forward};
  problem.options.in = problem.options.out = width;
  problem.options.precision = Precision::bf16;
  return problem;
}

TEST(WindowUpdate, TakesRowsForColumnsWhereWindowsHaveEnoughOfThem) {
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
