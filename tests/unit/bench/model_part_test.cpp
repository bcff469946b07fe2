// SPDX-License-Identifier: Apache-2.0
#include "bench/model_part.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/graph/transform.hpp"

#include "support/training_data.hpp"

namespace tessera::bench {
namespace {

train::Problem problem_of(VertexId vertices) {
  const Dataset dataset = test::learnable_vertices(vertices);
  train::Problem problem;
  problem.graph = dataset.graph;
  problem.features = dataset.features;
  problem.num_items = vertices;
  problem.outputs = 3;
  return problem;
}

const Matrix<float>& features_of(const train::Problem& problem) {
  return *std::get<DenseFeatures>(problem.features);
}

/// Which vertices of the whole a part has, by their features, which are noise and so differ.
std::vector<VertexId> vertices_of(const train::Problem& part, const train::Problem& whole) {
  std::vector<VertexId> found;
  const Matrix<float>& all = features_of(whole);
  VertexId next = 0;
  for (std::int64_t row = 0; row < part.num_items; ++row) {
    const float* const wanted = features_of(part).view().row(row);
    while (next < all.rows() && !std::equal(wanted, wanted + all.cols(), all.view().row(next))) {
      ++next;
    }
    found.push_back(next++);
  }
  return found;
}

TEST(ModelPart, IsTheProblemItselfWhereThatIsSmall) {
  const train::Problem problem = problem_of(90);
  const train::Problem part = part_of(problem, 1);
  EXPECT_EQ(part.graph, problem.graph);
  EXPECT_EQ(part.num_items, 90);
  EXPECT_EQ(part_of(problem, 1, {.vertices = 90, .edges = 1, .block = 30}).num_items, 30)
      << "many edges make it large, too";
}

TEST(ModelPart, TakesWholeBlocksWithTheirFeaturesAndEdges) {
  const train::Problem problem = problem_of(200);
  const train::Problem part = part_of(problem, 5, {.vertices = 48, .block = 16});
  ASSERT_EQ(part.num_items, 48);
  EXPECT_EQ(part.outputs, 3);
  const std::vector<VertexId> vertices = vertices_of(part, problem);
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    EXPECT_EQ(vertices[i] % 16, static_cast<VertexId>(i % 16)) << i;
  }
  EXPECT_EQ(part.graph, induced_subgraph(problem.graph, vertices));
}

TEST(ModelPart, DependsOnTheSeed) {
  const train::Problem problem = problem_of(2000);
  const PartSize size{.vertices = 64, .block = 16};
  const auto drawn = [&](std::uint64_t seed) {
    return vertices_of(part_of(problem, seed, size), problem);
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(ModelPart, LeavesUnionsOfGraphsWhole) {
  train::Problem problem = problem_of(200);
  problem.graph_task = true;
  EXPECT_EQ(part_of(problem, 1, {.vertices = 10, .block = 5}).graph, problem.graph);
}

}  // namespace
}  // namespace tessera::bench
