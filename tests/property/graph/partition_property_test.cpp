// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/partition.hpp"

#include <gtest/gtest.h>

#include "support/random_coo.hpp"
#include "tessera/graph/generate.hpp"

namespace tessera {
namespace {

using testing::ThreadScope;

struct NamedGraph {
  std::string name;
  Graph graph;
};

std::vector<NamedGraph> graphs_of(VertexId size) {
  std::vector<std::pair<VertexId, VertexId>> clique;
  std::vector<std::pair<VertexId, VertexId>> pairs;
  for (VertexId i = 0; i < size; ++i) {
    for (VertexId j = 0; j < i; ++j) clique.emplace_back(i, j);
    if (i % 2 == 1) pairs.emplace_back(i - 1, i);
  }
  return {{"no edges", from_coo(size, size, {}, {})},
          {"path", testing::path_graph(size)},
          {"star", testing::star_graph(size - 1)},
          {"clique", testing::undirected_graph(size, clique)},
          {"disjoint pairs", testing::undirected_graph(size, pairs)},
          {"directed with loops", testing::random_graph(size, size, 4 * size, 7)}};
}

TEST(PartitionProperty, EveryMethodIsValidBalancedAndRepeatable) {
  constexpr double imbalance = 0.1;
  for (const VertexId size : {1, 2, 15, 16, 17, 33, 90}) {
    for (const auto& [name, graph] : graphs_of(size)) {
      for (const std::int32_t parts : {1, 2, 3, 7, 16, 90}) {
        if (parts > size) continue;
        for (const CatalogueEntry& method : partition_methods()) {
          if (method.name == "metis" && !built_with_metis()) continue;
          SCOPED_TRACE(::testing::Message() << name << " of " << size << " into " << parts << " by "
                                            << method.name << ", seed 5");
          const PartitionOptions options{
              .parts = parts, .method = method.name, .imbalance = imbalance, .seed = 5};
          const Partition result = partition(graph, options);
          result.validate(size);
          const PartitionQuality quality = assess(graph, result);
          const VertexId even = (size + parts - 1) / parts;
          const auto allowed = static_cast<VertexId>((1 + imbalance) * size / parts);
          EXPECT_GE(quality.smallest, 1);
          EXPECT_LE(quality.largest, std::max(even, allowed));
          const ThreadScope scope(3);
          EXPECT_EQ(partition(graph, options).assignment, result.assignment);
        }
      }
    }
  }
}

/// `groups` groups, shuffled: of 13 edges drawn 12 stay inside.
Graph planted_partition(VertexId size, VertexId groups, std::uint64_t edges_drawn,
                        std::uint64_t seed) {
  const Random random(seed);
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (std::uint64_t k = 0; k < edges_drawn; ++k) {
    const auto i = static_cast<VertexId>(random.below(2 * k, static_cast<std::uint64_t>(size)));
    const auto j = static_cast<VertexId>(random.below(2 * k + 1, static_cast<std::uint64_t>(size)));
    const VertexId inside = j / groups * groups + i % groups;
    if (i != j && inside < size) edges.emplace_back(i, k % 13 == 0 ? j : inside);
  }
  return testing::undirected_graph(size, edges);
}

TEST(PartitionProperty, MultilevelFindsAPlantedPartition) {
  constexpr VertexId groups = 8;
  for (const std::uint64_t seed : {3, 4, 5}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Graph graph = planted_partition(2000, groups, 13000, seed);
    Partition planted{groups, {}, "planted"};
    for (VertexId v = 0; v < 2000; ++v) planted.assignment.push_back(v % groups);
    const Partition found = partition(graph, {.parts = groups, .seed = seed});
    EXPECT_LE(static_cast<double>(assess(graph, found).cut_edges),
              1.05 * static_cast<double>(assess(graph, planted).cut_edges));
  }
}

TEST(PartitionProperty, MultilevelCutsHardlyMoreThanMetis) {
  if (!built_with_metis()) GTEST_SKIP() << "built without METIS";
  const NamedGraph graphs[] = {
      {"grid", testing::grid_graph(40, 30)},
      {"rmat", build(generate::Rmat{.scale = 11, .edges = 20000})},
      {"blocks", build(generate::BlockModel{.vertices = 2000, .communities = 40})},
      {"molecules", build(generate::Molecules{.graphs = 100}).graph}};
  for (const auto& [name, graph] : graphs) {
    for (const std::int32_t parts : {4, 50}) {
      SCOPED_TRACE(::testing::Message() << name << " into " << parts);
      const auto cut_by = [&](const std::string& method) {
        return assess(graph, partition(graph, {.parts = parts, .method = method})).cut_edges;
      };
      EXPECT_LE(static_cast<double>(cut_by("multilevel")),
                1.1 * static_cast<double>(cut_by("metis")));
    }
  }
}

TEST(PartitionProperty, LargerGraphsAreCutTheSameByAnyNumberOfThreads) {
  // Large enough for several levels, and for loops of several ranges.
  const Graph graph = build(generate::Rmat{.scale = 13, .edges = 50000});
  const PartitionOptions options{.parts = 40, .seed = 9};
  const Partition whole = partition(graph, options);
  EXPECT_LE(assess(graph, whole).imbalance, 0.05);
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(::testing::Message() << threads << " threads");
    const ThreadScope scope(threads);
    EXPECT_EQ(partition(graph, options).assignment, whole.assignment);
  }
}

}  // namespace
}  // namespace tessera
