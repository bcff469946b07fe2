// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// Every device translates a graph into the same bytes.
namespace tessera::tiles {
namespace {

std::vector<Device> devices() {
  std::vector<Device> list = {{DeviceKind::cpu, 0}};
  if (num_gpus() > 0) list.push_back({DeviceKind::cuda, 0});
  return list;
}

class TranslatingDevice : public ::testing::TestWithParam<Device> {
 protected:
  void expect_same(const Graph& graph) {
    for (const int height : window_heights) {
      SCOPED_TRACE(height);
      for (const Side side : {Side::forward, Side::transposed}) {
        SCOPED_TRACE(to_string(side));
        const TiledGraph tiled = translate(graph, height, side, GetParam());
        EXPECT_NO_THROW(tiled.validate());
        EXPECT_EQ(tiled, translate(graph, height, side));
      }
    }
  }
};

TEST_P(TranslatingDevice, MakesTheSameBytesOfOddGraphs) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    expect_same(named.graph);
  }
}

TEST_P(TranslatingDevice, MakesTheSameBytesAtTheEdgesOfTiles) {
  for (const VertexId n : {63, 64, 65, 127, 128, 129, 255, 256, 257}) {
    SCOPED_TRACE(n);
    expect_same(testing::random_graph(n, 300, 9 * n, 3, false));
    expect_same(testing::hub_graph(70, n, 4));
  }
}

/// More columns than a bitmap of shared memory holds at once.
TEST_P(TranslatingDevice, MakesTheSameBytesOfManyColumns) {
  expect_same(testing::random_graph(300, 2'000'003, 30000, 5, false));
}

TEST_P(TranslatingDevice, MakesTheSameBytesOfASkewedGraph) {
  expect_same(generate::build(generate::Rmat{}));
}

INSTANTIATE_TEST_SUITE_P(All, TranslatingDevice, ::testing::ValuesIn(devices()),
                         [](const auto& device) {
                           return device.param.kind == DeviceKind::cpu ? "cpu" : "cuda";
                         });

}  // namespace
}  // namespace tessera::tiles
