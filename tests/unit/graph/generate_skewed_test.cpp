// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "support/generated.hpp"

namespace tessera {
namespace {

using generate::ChungLu;
using generate::Rmat;
using namespace testing;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Rmat, IsSimpleAndSkewed) {
  for (const bool symmetric : {true, false}) {
    Rmat model{.scale = 13, .edges = 8192 * 14};
    model.symmetric = symmetric;
    const Graph graph = generate::build(model);
    expect_simple(graph, 8192, symmetric);
    const EdgeOffset drawn = symmetric ? 2 * model.edges : model.edges;
    EXPECT_LE(graph.num_edges(), drawn);
    EXPECT_GT(graph.num_edges(), drawn * 6 / 10);
    EXPECT_GT(max_degree(graph), 20 * graph.num_edges() / 8192);
  }
}

TEST(Rmat, EqualQuartersAreUniform) {
  const Graph graph =
      generate::build(Rmat{.scale = 12, .edges = 40960, .a = 0.25, .b = 0.25, .c = 0.25});
  EXPECT_LT(max_degree(graph), 60);
  EXPECT_NEAR(static_cast<double>(graph.num_edges()), 2 * 40960, 2 * 40960 * 0.01);
}

TEST(Rmat, QuartersLieWhereTheyShould) {
  // All in the upper right: row 0, last column.
  const Graph corner = generate::build(
      Rmat{.scale = 5, .edges = 10, .a = 0, .b = 1, .c = 0, .scramble = false, .symmetric = false});
  EXPECT_EQ(corner.num_edges(), 1);
  ASSERT_EQ(corner.degree(0), 1);
  EXPECT_EQ(corner.neighbours(0)[0], 31);
  // Without scrambling vertex 0 has the highest degree; scrambled it is some other.
  Rmat model{.scale = 10, .edges = 20000, .scramble = false};
  const Graph plain = generate::build(model);
  EXPECT_EQ(plain.degree(0), max_degree(plain));
  model.scramble = true;
  const Graph scrambled = generate::build(model);
  EXPECT_EQ(max_degree(scrambled), max_degree(plain));
  EXPECT_EQ(scrambled.num_edges(), plain.num_edges());
  EXPECT_LT(scrambled.degree(0), max_degree(scrambled));
}

TEST(Rmat, SmallGraphs) {
  expect_simple(generate::build(Rmat{.scale = 0, .edges = 10}), 1, true);
  expect_simple(generate::build(Rmat{.scale = 4, .edges = 0}), 16, true);
  expect_simple(generate::build(Rmat{.scale = 1, .edges = 100}), 2, true);
}

TEST(Rmat, DependsOnTheSeedAlone) { expect_seeded(Rmat{.scale = 11, .edges = 50000}); }

TEST(Rmat, RejectsWhatCannotBe) {
  expect_rejected(Rmat{.scale = -1});
  expect_rejected(Rmat{.scale = 31});
  expect_rejected(Rmat{.edges = -1});
  expect_rejected(Rmat{.a = -0.1});
  expect_rejected(Rmat{.a = 0.7, .b = 0.2, .c = 0.2});
  expect_rejected(Rmat{.a = nan});
}

TEST(ChungLu, HasTheEdgesAndTheHubsAskedFor) {
  for (const bool symmetric : {true, false}) {
    ChungLu model{.vertices = 50000, .edges = 500000, .max_degree = 600};
    model.symmetric = symmetric;
    const Graph graph = generate::build(model);
    expect_simple(graph, 50000, symmetric);
    EXPECT_NEAR(static_cast<double>(graph.num_edges()), 500000, 5000);
    EXPECT_NEAR(static_cast<double>(max_degree(graph)), 600, 150);
  }
}

TEST(ChungLu, DegreesFallWithRank) {
  const Graph graph = generate::build(
      ChungLu{.vertices = 100000, .edges = 1000000, .exponent = 2.5, .scramble = false});
  EXPECT_NEAR(static_cast<double>(graph.degree(0)), 1000, 150);
  // The tail follows (rank)^-2/3: eight times the rank, a quarter of the degree.
  EdgeOffset early = 0, late = 0;
  for (VertexId v = 8000; v < 9000; ++v) early += graph.degree(v);
  for (VertexId v = 64000; v < 72000; ++v) late += graph.degree(v);
  EXPECT_NEAR(static_cast<double>(late) / 8 / static_cast<double>(early), 0.25, 0.02);
}

TEST(ChungLu, SmallGraphs) {
  expect_simple(generate::build(ChungLu{.vertices = 0, .edges = 0}), 0, true);
  expect_simple(generate::build(ChungLu{.vertices = 1, .edges = 0}), 1, true);
  expect_simple(generate::build(ChungLu{.vertices = 17, .edges = 60}), 17, true);
}

TEST(ChungLu, DependsOnTheSeedAlone) { expect_seeded(ChungLu{.vertices = 3000, .edges = 40000}); }

TEST(ChungLu, RejectsWhatCannotBe) {
  expect_rejected(ChungLu{.vertices = -1});
  expect_rejected(ChungLu{.edges = -1});
  expect_rejected(ChungLu{.vertices = 10, .edges = 91});
  expect_rejected(ChungLu{.exponent = 2});
  expect_rejected(ChungLu{.exponent = nan});
  expect_rejected(ChungLu{.max_degree = -1});
  expect_rejected(ChungLu{.vertices = 1000, .edges = 10000, .max_degree = 10});
}

}  // namespace
}  // namespace tessera
