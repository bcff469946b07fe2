// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/partition.hpp"

#include <gtest/gtest.h>

#include "support/random_coo.hpp"

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
  for (const VertexId size : {1, 2, 15, 16, 17, 31, 33, 200}) {
    for (const auto& [name, graph] : graphs_of(size)) {
      for (const std::int32_t parts : {1, 2, 3, 7, 16, 200}) {
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

TEST(PartitionProperty, GrowFindsMostOfAPlantedPartition) {
  // Eight groups of 250, shuffled: 12 of 13 edges stay inside.
  constexpr VertexId groups = 8;
  constexpr VertexId size = 2000;
  const Random random(3);
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (std::uint64_t k = 0; k < 13000; ++k) {
    const auto i = static_cast<VertexId>(random.below(2 * k, size));
    const auto j = static_cast<VertexId>(random.below(2 * k + 1, size));
    const VertexId inside = j / groups * groups + i % groups;
    if (i != j) edges.emplace_back(i, k % 13 == 0 ? j : inside);
  }
  const Graph graph = testing::undirected_graph(size, edges);
  const auto share_cut_by = [&](const std::string& method) {
    return assess(graph, partition(graph, {.parts = groups, .method = method})).cut_share;
  };
  EXPECT_LT(share_cut_by("grow"), 0.6 * share_cut_by("contiguous"));
  if (built_with_metis()) {
    EXPECT_LT(share_cut_by("metis"), 0.4 * share_cut_by("contiguous"));
  }
}

}  // namespace
}  // namespace tessera
