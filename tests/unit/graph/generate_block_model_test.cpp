// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/generated.hpp"

namespace tessera {
namespace {

using generate::BlockModel;
using namespace testing;

EdgeOffset edges_inside(const Graph& graph, const std::vector<std::int32_t>& community) {
  EdgeOffset inside = 0;
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    for (const VertexId source : graph.neighbours(v)) {
      inside +=
          community[static_cast<std::size_t>(v)] == community[static_cast<std::size_t>(source)] ? 1
                                                                                                : 0;
    }
  }
  return inside;
}

TEST(BlockModel, HasTheMeanDegreeAndTheShareInside) {
  for (const bool symmetric : {true, false}) {
    // The second is as dense inside its communities as a reddit-sized graph, the last far denser.
    for (const BlockModel& model :
         {BlockModel{1003, 10, 20, 0.8, symmetric}, BlockModel{4000, 4, 100, 0.8, symmetric},
          BlockModel{777, 40, 12, 0.9, symmetric}}) {
      SCOPED_TRACE(model.vertices);
      const Graph graph = generate::build(model);
      expect_simple(graph, model.vertices, symmetric);
      const double entries = model.vertices * model.mean_degree;
      EXPECT_NEAR(static_cast<double>(graph.num_edges()), entries, 1);
      EXPECT_NEAR(static_cast<double>(edges_inside(graph, generate::communities(model))),
                  model.inside * entries, 2);
    }
  }
}

TEST(BlockModel, CommunitiesAreContiguousAndOfNearlyEqualSize) {
  for (const VertexId vertices : {1, 15, 16, 17, 31, 33, 100}) {
    for (const VertexId count : {1, 3, 7, 15}) {
      if (count > vertices) continue;
      SCOPED_TRACE(::testing::Message() << vertices << " in " << count);
      const auto community = generate::communities(BlockModel{vertices, count, 0});
      std::vector<int> sizes(static_cast<std::size_t>(count));
      for (std::size_t v = 0; v < community.size(); ++v) {
        ++sizes.at(static_cast<std::size_t>(community[v]));
        if (v > 0) {
          EXPECT_LE(community[v - 1], community[v]);
        }
      }
      const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*most - *least, 1);
      EXPECT_GE(*least, 1);
    }
  }
}

TEST(BlockModel, ExtremeShares) {
  const BlockModel none{100, 10, 8, 0.0};
  EXPECT_EQ(edges_inside(generate::build(none), generate::communities(none)), 0);
  const BlockModel all{100, 10, 8, 1.0};
  EXPECT_EQ(edges_inside(generate::build(all), generate::communities(all)), 800);
  // Every pair inside: ten cliques.
  const Graph cliques = generate::build(BlockModel{100, 10, 9, 1.0});
  for (VertexId v = 0; v < 100; ++v) EXPECT_EQ(cliques.degree(v), 9);
  // Every pair across.
  const Graph across = generate::build(BlockModel{100, 10, 90, 0.0, false});
  for (VertexId v = 0; v < 100; ++v) EXPECT_EQ(across.degree(v), 90);
}

TEST(BlockModel, SmallGraphs) {
  expect_simple(generate::build(BlockModel{0, 1, 0}), 0, true);
  expect_simple(generate::build(BlockModel{1, 1, 0}), 1, true);
  expect_simple(generate::build(BlockModel{17, 17, 4, 0}), 17, true);
  EXPECT_EQ(generate::build(BlockModel{2, 1, 1, 1}).num_edges(), 2);
}

TEST(BlockModel, DependsOnTheSeedAlone) {
  expect_seeded(BlockModel{4000, 13, 30, 0.8});
  expect_seeded(BlockModel{4000, 13, 30, 0.8, false});
}

TEST(BlockModel, RejectsWhatCannotBe) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_rejected(BlockModel{-1, 1, 0});
  expect_rejected(BlockModel{10, 0, 1});
  expect_rejected(BlockModel{10, 11, 1});
  expect_rejected(BlockModel{10, 2, -1});
  expect_rejected(BlockModel{10, 2, nan});
  expect_rejected(BlockModel{10, 2, 10});
  expect_rejected(BlockModel{10, 2, 1, 1.1});
  expect_rejected(BlockModel{10, 2, 1, nan});
  expect_rejected(BlockModel{10, 2, 6, 1});    // five in each community: four neighbours at most
  expect_rejected(BlockModel{10, 1, 4, 0.5});  // nothing is outside one community
}

}  // namespace
}  // namespace tessera
