// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/partition.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

std::vector<std::string> available_methods() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : partition_methods()) {
    if (entry.name != "metis" || built_with_metis()) names.push_back(entry.name);
  }
  return names;
}

TEST(Partition, EveryMethodIsListed) {
  EXPECT_EQ(partition_methods().size(), 4u);
  EXPECT_EQ(partition_methods()[0].name, "auto");
}

TEST(Partition, AutoSaysWhatRan) {
  const Partition result = partition(testing::path_graph(10), {.parts = 2});
  EXPECT_EQ(result.method, "multilevel");
}

TEST(Partition, MetisWithoutMetisIsAnError) {
  if (built_with_metis()) GTEST_SKIP() << "built with METIS";
  testing::expect_error(ErrorCode::backend_unavailable, {"METIS", "multilevel"},
                        [] { partition(testing::path_graph(4), {.parts = 2, .method = "metis"}); });
}

TEST(Partition, OnePartHoldsAll) {
  for (const std::string& method : available_methods()) {
    SCOPED_TRACE(method);
    const Partition result = partition(testing::path_graph(17), {.parts = 1, .method = method});
    EXPECT_EQ(result.assignment, std::vector<std::int32_t>(17, 0));
  }
}

TEST(Partition, OfNoVerticesIsEmpty) {
  for (const std::string& method : available_methods()) {
    SCOPED_TRACE(method);
    const Partition result = partition(Graph(), {.parts = 3, .method = method});
    result.validate(0);
    EXPECT_NE(result.method, "auto");
    EXPECT_EQ(assess(Graph(), result).largest, 0);
    EXPECT_EQ(members(result).size(), 3u);
  }
}

TEST(Partition, RefusesWhatMeansNothing) {
  const Graph graph = testing::path_graph(4);
  EXPECT_THROW(partition(graph, {.parts = 5}), Error);
  EXPECT_THROW(partition(graph, {.parts = 0}), Error);
  EXPECT_THROW(partition(graph, {.parts = -1}), Error);
  EXPECT_THROW(partition(graph, {.parts = 2, .imbalance = -0.5}), Error);
  EXPECT_THROW(partition(graph, {.parts = 2, .imbalance = std::nan("")}), Error);
  EXPECT_THROW(partition(from_coo(2, 3, {}, {}), {.parts = 2}), Error);
  testing::expect_error(ErrorCode::invalid_argument,
                        {"scotch", "metis", "multilevel", "contiguous"},
                        [&] { partition(graph, {.parts = 2, .method = "scotch"}); });
}

TEST(Partition, ContiguousIsRangesOfIds) {
  const Partition result = partition(testing::path_graph(7), {.parts = 3, .method = "contiguous"});
  EXPECT_EQ(result.assignment, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2, 2}));
}

TEST(Partition, FindsTwoClustersJoinedByOneEdge) {
  std::vector<std::pair<VertexId, VertexId>> edges{{0, 1}};
  // Even vertices form one clique, odd ones another.
  for (VertexId i = 0; i < 40; ++i) {
    for (VertexId j = i + 2; j < 40; j += 2) edges.emplace_back(i, j);
  }
  const Graph graph = testing::undirected_graph(40, edges);
  EXPECT_EQ(assess(graph, partition(graph, {.parts = 2})).cut_edges, 2);
}

TEST(Partition, CutsAGridNearlyAsWellAsAStraightLine) {
  const Graph grid = testing::grid_graph(32, 32);
  const auto quality = assess(grid, partition(grid, {.parts = 4}));
  // Four squares cut 2 * 32 edges, each counted both ways.
  EXPECT_LE(quality.cut_edges, 2 * 64 + 2 * 64 / 4);
  EXPECT_LE(quality.imbalance, 0.05);
}

TEST(Partition, AssessCountsCutEdgesAndSizes) {
  const Partition halves{2, {0, 0, 1}, "given"};
  const Graph graph =
      from_coo(3, 3, std::vector<VertexId>{0, 1, 2, 2}, std::vector<VertexId>{1, 2, 1, 2});
  const PartitionQuality quality = assess(graph, halves);
  EXPECT_EQ(quality.cut_edges, 2);
  EXPECT_EQ(quality.cut_share, 0.5);
  EXPECT_EQ(quality.smallest, 1);
  EXPECT_EQ(quality.largest, 2);
  EXPECT_NEAR(quality.imbalance, 1.0 / 3, 1e-12);
  EXPECT_EQ(members(halves), (std::vector<std::vector<VertexId>>{{0, 1}, {2}}));
}

TEST(Partition, ValidateNamesWhatIsWrong) {
  EXPECT_THROW((Partition{2, {0, 1}, ""}.validate(3)), Error);
  EXPECT_THROW((Partition{2, {0, 2}, ""}.validate(2)), Error);
  EXPECT_THROW((Partition{2, {0, -1}, ""}.validate(2)), Error);
  EXPECT_NO_THROW((Partition{2, {0, 1}, ""}.validate(2)));
}

}  // namespace
}  // namespace tessera
