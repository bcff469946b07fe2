// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "graph/draw.hpp"
#include "support/generated.hpp"

namespace tessera {
namespace {

using generate::Bipartite;
using generate::ErdosRenyi;
using namespace testing;

TEST(NthPair, NumbersAllPairsInOrder) {
  std::uint64_t index = 0;
  for (VertexId v = 1; v < 40; ++v) {
    for (VertexId u = 0; u < v; ++u) {
      const generate::Entry pair = generate::nth_pair(index++);
      ASSERT_EQ(pair.row, u);
      ASSERT_EQ(pair.col, v);
    }
  }
  // The last pair of the largest graph, where the square root is least exact.
  constexpr VertexId last = std::numeric_limits<VertexId>::max() - 1;
  const auto pair = generate::nth_pair(generate::num_pairs(std::uint64_t{last} + 1) - 1);
  EXPECT_EQ(pair.row, last - 1);
  EXPECT_EQ(pair.col, last);
}

TEST(ErdosRenyi, HasExactlyTheEdgesAskedFor) {
  for (const bool symmetric : {true, false}) {
    for (const VertexId vertices : {2, 15, 16, 17, 31, 33, 1000}) {
      const EdgeOffset all = EdgeOffset{vertices} * (vertices - 1);
      for (const EdgeOffset edges : {EdgeOffset{0}, EdgeOffset{2}, all / 4 * 2}) {
        SCOPED_TRACE(::testing::Message() << vertices << " " << edges << " " << symmetric);
        const Graph graph = generate::build(ErdosRenyi{vertices, edges, symmetric});
        EXPECT_EQ(graph.num_edges(), edges);
        const bool by_chance = vertices == 2 || edges <= 2;
        expect_simple(graph, vertices, symmetric || (by_chance && is_symmetric(graph)));
      }
    }
  }
}

TEST(ErdosRenyi, CanBeComplete) {
  for (const bool symmetric : {true, false}) {
    const Graph graph = generate::build(ErdosRenyi{17, 17 * 16, symmetric});
    expect_simple(graph, 17, true);
    EXPECT_EQ(graph.num_edges(), 17 * 16);
  }
}

TEST(ErdosRenyi, OddNumberOfEntriesIsRoundedDown) {
  EXPECT_EQ(generate::build(ErdosRenyi{100, 99}).num_edges(), 98);
}

TEST(ErdosRenyi, EmptyGraphs) {
  expect_simple(generate::build(ErdosRenyi{0, 0}), 0, true);
  expect_simple(generate::build(ErdosRenyi{1, 0}), 1, true);
  expect_simple(generate::build(ErdosRenyi{33, 0, false}), 33, true);
}

TEST(ErdosRenyi, DegreesSpreadEvenly) {
  const Graph graph = generate::build(ErdosRenyi{20000, 400000});
  EXPECT_LT(max_degree(graph), 50);
  EdgeOffset in_first_half = 0;
  for (VertexId v = 0; v < 10000; ++v) in_first_half += graph.degree(v);
  EXPECT_NEAR(static_cast<double>(in_first_half), 200000, 2000);
}

TEST(ErdosRenyi, DependsOnTheSeedAlone) {
  expect_seeded(ErdosRenyi{5000, 100000});
  expect_seeded(ErdosRenyi{5000, 100000, false});
}

TEST(ErdosRenyi, RejectsWhatCannotBe) {
  expect_rejected(ErdosRenyi{-1, 0});
  expect_rejected(ErdosRenyi{10, -1});
  expect_rejected(ErdosRenyi{10, 91});
  expect_rejected(ErdosRenyi{1, 1});
}

TEST(ErdosRenyi, TellsItsProgress) {
  std::int64_t done = 0, total = 0;
  generate::build(ErdosRenyi{100, 200},
                  [&](std::string_view stage, std::int64_t d, std::int64_t t) {
                    if (stage == "drawing edges") {
                      done = d;
                      total = t;
                    }
                  });
  EXPECT_EQ(total, 100);
  EXPECT_EQ(done, total);
}

TEST(Bipartite, HasExactlyTheEdgesAskedFor) {
  for (const EdgeOffset edges : {0, 1, 100, 17 * 31}) {
    const Graph graph = generate::build(Bipartite{17, 31, edges});
    graph.validate();
    EXPECT_EQ(graph.num_rows(), 17);
    EXPECT_EQ(graph.num_cols(), 31);
    EXPECT_EQ(graph.num_edges(), edges);
  }
  EXPECT_EQ(generate::build(Bipartite{0, 5, 0}).num_cols(), 5);
  EXPECT_EQ(generate::build(Bipartite{5, 0, 0}).num_rows(), 5);
}

TEST(Bipartite, DependsOnTheSeedAlone) { expect_seeded(Bipartite{3000, 700, 50000}); }

TEST(Bipartite, RejectsWhatCannotBe) {
  expect_rejected(Bipartite{-1, 5, 0});
  expect_rejected(Bipartite{5, -1, 0});
  expect_rejected(Bipartite{5, 5, -1});
  expect_rejected(Bipartite{5, 5, 26});
}

}  // namespace
}  // namespace tessera
