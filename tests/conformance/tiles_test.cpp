// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/dot_steps.hpp"
#include "tiles/dot_tiles.hpp"
#include "tiles/quad_values.hpp"
#include "tiles/tile_values.hpp"

/// Every device translates a graph into the same bytes.
namespace tessera::tiles {
namespace {

std::vector<Device> devices() {
  std::vector<Device> list = {{DeviceKind::cpu, 0}};
  if (num_gpus() > 0) list.push_back({DeviceKind::cuda, 0});
  return list;
}

class TranslatingOnDevice : public ::testing::TestWithParam<Device> {
 protected:
  void expect_same(const Graph& graph) {
    for (const int height : window_heights) {
      SCOPED_TRACE(height);
      for (const Side side : {Side::forward, Side::transposed}) {
        SCOPED_TRACE(to_string(side));
        const TiledGraph tiled = translate(graph, height, side, GetParam());
        EXPECT_NO_THROW(tiled.validate());
        EXPECT_EQ(tiled, translate(graph, height, side));
        if (height < 16) continue;
        const QuadTiles quads = translate_quads(graph, height, side);
        EXPECT_EQ(translate_quads(graph, height, side, GetParam()), quads);
        EXPECT_EQ(place_quad_values(graph, height, side, GetParam()),
                  place_quad_values(graph, quads, side));
        EXPECT_EQ(place_values(graph, tiled, side, GetParam()), place_values(graph, tiled, side));
        expect_same_dots(graph, tiled, side);
      }
    }
  }

  void expect_same_dots(const Graph& graph, const TiledGraph& tiled, Side side) {
    if (tiled.height == dot_tile_height) {
      EXPECT_EQ(make_dot_tiles(graph, tiled, side, GetParam()), make_dot_tiles(graph, tiled, side));
    }
    if (tiled.height != dot_step_rows) return;
    for (const int run_steps : {1, 4}) {
      EXPECT_EQ(make_dot_steps(graph, tiled, run_steps, side, GetParam()),
                make_dot_steps(graph, tiled, run_steps, side));
    }
  }

  /// Thresholds on both sides of powers of two, and more than a window has rows.
  void expect_same_split(const Graph& graph) {
    for (const int height : window_heights) {
      for (const int min_uses : {1, 2, 3, 8, 9, 1000}) {
        for (const Side side : {Side::forward, Side::transposed}) {
          SCOPED_TRACE(std::to_string(height) + " rows, " + std::to_string(min_uses) + " uses, " +
                       to_string(side));
          const SplitGraph split = translate_dense(graph, height, min_uses, side, GetParam());
          const SplitGraph expected = translate_dense(graph, height, min_uses, side);
          EXPECT_NO_THROW(split.dense.validate());
          EXPECT_NO_THROW(split.rest.validate());
          EXPECT_EQ(split.dense, expected.dense);
          EXPECT_EQ(split.rest, expected.rest);
        }
      }
    }
  }
};

TEST_P(TranslatingOnDevice, MakesTheSameBytesOfOddGraphs) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    expect_same(named.graph);
  }
}

TEST_P(TranslatingOnDevice, MakesTheSameBytesAtTheEdgesOfTiles) {
  for (const VertexId n : {63, 64, 65, 127, 128, 129, 255, 256, 257}) {
    SCOPED_TRACE(n);
    expect_same(testing::random_graph(n, 300, 9 * n, 3, false));
    expect_same(testing::hub_graph(70, n, 4));
  }
}

/// More columns than a bitmap of shared memory holds at once.
TEST_P(TranslatingOnDevice, MakesTheSameBytesOfManyColumns) {
  expect_same(testing::random_graph(300, 2'000'003, 30000, 5, false));
}

/// Windows of several segments, with rows that use most of their columns and many that use few, and
/// dense ones, in which open quads make way.
TEST_P(TranslatingOnDevice, ArrangesLongWindowsIntoTheSameBytes) {
  for (const Graph& graph :
       {testing::random_graph(300, 9001, 200'000, 6, false),
        testing::random_graph(40, 20'000, 300'000, 7, false),
        testing::random_graph(256, 1325, 140'000, 9, false), testing::hub_graph(100, 12'289, 8)}) {
    for (const int height : quad_heights) {
      SCOPED_TRACE(height);
      EXPECT_EQ(translate_quads(graph, height, Side::transposed, GetParam()),
                translate_quads(graph, height, Side::transposed));
      EXPECT_EQ(translate_quads(graph, height, Side::forward, GetParam()),
                translate_quads(graph, height, Side::forward));
    }
  }
}

/// One row alone in its window has columns at the edges of parts and segments; the windows around
/// it are empty.
TEST_P(TranslatingOnDevice, ArrangesWindowsAtTheEdgesOfSegmentsIntoTheSameBytes) {
  for (const VertexId columns : {1, 63, 64, 65, 383, 384, 385, 767, 768, 769, 1153}) {
    SCOPED_TRACE(columns);
    std::vector<EdgeOffset> offsets(1001, 0);
    for (std::size_t row = 0; row < offsets.size(); ++row) {
      offsets[row] =
          (row > 300 ? columns : 0) + (row > 307 ? columns : 0) + (row > 999 ? EdgeOffset{3} : 0);
    }
    std::vector<VertexId> indices;
    for (const VertexId count : {columns, columns, 3}) {
      for (VertexId i = 0; i < count; ++i) indices.push_back(2 * i);
    }
    const Graph graph(1000, 4000, std::move(offsets), std::move(indices));
    for (const int height : quad_heights) {
      SCOPED_TRACE(height);
      const QuadTiles made = translate_quads(graph, height, Side::forward, GetParam());
      EXPECT_NO_THROW(made.validate());
      EXPECT_EQ(made, translate_quads(graph, height, Side::forward));
    }
  }
}

TEST_P(TranslatingOnDevice, MakesTheSameBytesOfASkewedGraph) {
  expect_same(generate::build(generate::Rmat{}));
}

/// Little enough for compute-sanitizer: strips without edges, with one and with several blocks of
/// codes.
TEST_P(TranslatingOnDevice, MakesTheSameBytesOfSmallGraphs) {
  expect_same(testing::random_graph(65, 300, 900, 12, false));
  expect_same(testing::random_graph(70, 130, 6000, 13, false));
}

/// Little enough for compute-sanitizer.
TEST_P(TranslatingOnDevice, SplitsASmallGraphIntoTheSameBytes) {
  const Graph graph = testing::random_graph(65, 300, 900, 12, false);
  for (const int height : {8, 64}) {
    for (const Side side : {Side::forward, Side::transposed}) {
      const SplitGraph split = translate_dense(graph, height, 3, side, GetParam());
      const SplitGraph expected = translate_dense(graph, height, 3, side);
      EXPECT_EQ(split.dense, expected.dense);
      EXPECT_EQ(split.rest, expected.rest);
    }
  }
}

TEST_P(TranslatingOnDevice, SplitsOddGraphsIntoTheSameBytes) {
  for (const testing::NamedGraph& named : testing::odd_patterns()) {
    SCOPED_TRACE(named.name);
    expect_same_split(named.graph);
  }
}

TEST_P(TranslatingOnDevice, SplitsIntoTheSameBytesAtTheEdgesOfTiles) {
  for (const VertexId n : {0, 1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129}) {
    SCOPED_TRACE(n);
    expect_same_split(testing::random_graph(n, 90, 20 * n, 13, false));
    expect_same_split(testing::random_graph(n, n, 9 * n, 14, false));
    expect_same_split(testing::hub_graph(70, n, 15));
  }
}

/// Counts need bitmaps of their own, so that rounds are shorter; rows go on through several.
TEST_P(TranslatingOnDevice, SplitsManyColumnsIntoTheSameBytes) {
  expect_same_split(testing::random_graph(300, 700'003, 30000, 16, false));
}

TEST_P(TranslatingOnDevice, SplitsASkewedGraphIntoTheSameBytes) {
  expect_same_split(generate::build(generate::Rmat{.scale = 11, .edges = 20000}));
}

INSTANTIATE_TEST_SUITE_P(All, TranslatingOnDevice, ::testing::ValuesIn(devices()),
                         [](const auto& device) {
                           return device.param.kind == DeviceKind::cpu ? "cpu" : "cuda";
                         });

}  // namespace
}  // namespace tessera::tiles
