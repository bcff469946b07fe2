// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "support/generated.hpp"

namespace tessera {
namespace {

using generate::Molecules;
using generate::MoleculeUnion;
using namespace testing;

/// Vertices reached from the first one of each molecule, summed.
std::int64_t reached_from_firsts(const MoleculeUnion& molecules) {
  const auto vertices = molecules.graph_ids.size();
  std::vector<bool> seen(vertices);
  std::int64_t reached = 0;
  for (std::size_t v = 0; v < vertices; ++v) {
    if (v > 0 && molecules.graph_ids[v] == molecules.graph_ids[v - 1]) continue;
    std::vector<VertexId> front = {static_cast<VertexId>(v)};
    seen[v] = true;
    while (!front.empty()) {
      const VertexId next = front.back();
      front.pop_back();
      ++reached;
      for (const VertexId other : molecules.graph.neighbours(next)) {
        if (!seen[static_cast<std::size_t>(other)]) {
          seen[static_cast<std::size_t>(other)] = true;
          front.push_back(other);
        }
      }
    }
  }
  return reached;
}

TEST(Molecules, AreConnectedAndHaveAtMostFourBonds) {
  for (const double size : {1.0, 2.0, 5.0, 25.0, 60.0}) {
    SCOPED_TRACE(size);
    const MoleculeUnion molecules = generate::build(Molecules{300, size, 2.1});
    const auto vertices = static_cast<VertexId>(molecules.graph_ids.size());
    expect_simple(molecules.graph, vertices, true);
    EXPECT_LE(max_degree(molecules.graph), 4);
    EXPECT_EQ(reached_from_firsts(molecules), vertices);
    EXPECT_EQ(molecules.graph_ids.back(), 299);
    for (VertexId v = 0; v < vertices; ++v) {
      const auto graph_id = molecules.graph_ids[static_cast<std::size_t>(v)];
      if (v > 0) {
        const auto step = graph_id - molecules.graph_ids[static_cast<std::size_t>(v) - 1];
        ASSERT_TRUE(step == 0 || step == 1);
      }
      for (const VertexId other : molecules.graph.neighbours(v)) {
        ASSERT_EQ(molecules.graph_ids[static_cast<std::size_t>(other)], graph_id);
      }
    }
  }
}

TEST(Molecules, HaveTheMeansAskedFor) {
  const MoleculeUnion molecules = generate::build(Molecules{5000, 25, 2.1});
  const double vertices = molecules.graph.num_rows();
  EXPECT_NEAR(vertices / 5000, 25, 0.5);
  EXPECT_NEAR(static_cast<double>(molecules.graph.num_edges()) / vertices, 2.1, 0.02);
  // More rings than usual still find room.
  const MoleculeUnion dense = generate::build(Molecules{500, 40, 2.8});
  EXPECT_NEAR(static_cast<double>(dense.graph.num_edges()) / dense.graph.num_rows(), 2.8, 0.05);
}

TEST(Molecules, LowDegreeGivesTrees) {
  const MoleculeUnion trees = generate::build(Molecules{200, 20, 0});
  EXPECT_EQ(trees.graph.num_edges(), 2 * (trees.graph.num_rows() - 200));
}

TEST(Molecules, NoGraphs) {
  const MoleculeUnion none = generate::build(Molecules{0, 25, 2.1});
  expect_simple(none.graph, 0, true);
  EXPECT_TRUE(none.graph_ids.empty());
}

TEST(Molecules, DependOnTheSeedAlone) {
  const auto with = [](int threads, std::uint64_t seed) {
    const ThreadScope scope(threads);
    return generate::build(Molecules{2000, 25, 2.1, seed});
  };
  const MoleculeUnion one = with(1, 1);
  for (const int threads : {2, 3}) {
    const MoleculeUnion several = with(threads, 1);
    EXPECT_EQ(one.graph, several.graph);
    EXPECT_EQ(one.graph_ids, several.graph_ids);
  }
  EXPECT_NE(one.graph, with(2, 2).graph);
}

TEST(Molecules, RejectWhatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_rejected(Molecules{-1});
  expect_rejected(Molecules{10, 0.5});
  expect_rejected(Molecules{10, nan});
  expect_rejected(Molecules{10, 25, -1});
  expect_rejected(Molecules{10, 25, 3.5});
  expect_rejected(Molecules{10, 25, nan});
  expect_rejected(Molecules{200000000, 25});
}

}  // namespace
}  // namespace tessera
