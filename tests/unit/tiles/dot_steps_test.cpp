// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_steps.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"
#include "support/random_coo.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::tiles {
namespace {

/// Follows every row of every run as a kernel does: bits name the edges, one after the other.
void expect_every_edge_once(const Graph& graph, const TiledGraph& tiled, const DotSteps& dots) {
  std::vector<int> times(static_cast<std::size_t>(graph.num_edges()));
  for (std::int64_t i = 0; i + 1 < dots.runs.size(); ++i) {
    const DotRun& run = dots.runs[i];
    for (int row = 0; row < dot_step_rows; ++row) {
      const DotPlaces& places = dots.places[i * 8 + row % 8];
      EdgeOffset edge = row < 8 ? places.lower : places.upper;
      for (std::int64_t step = run.first_step; step < run.first_step + run.num_steps(); ++step) {
        const std::uint32_t mask = dots.masks[step * 8 + row % 8] >> (row < 8 ? 0 : 16);
        for (int column = 0; column < step_columns; ++column) {
          if ((mask >> column & 1u) == 0) continue;
          const std::int64_t target = run.window() * dot_step_rows + row;
          ASSERT_LT(target, graph.num_rows());
          ASSERT_GE(edge, graph.row_offsets()[target]);
          ASSERT_LT(edge, graph.row_offsets()[target + 1]);
          EXPECT_EQ(graph.col_indices()[edge], tiled.columns[step * step_columns + column]);
          ++times[static_cast<std::size_t>(edge++)];
        }
      }
    }
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), graph.num_edges());
}

TEST(DotSteps, NameEveryEdgeOnce) {
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  for (const VertexId rows : {0, 1, 7, 8, 9, 15, 16, 17, 300}) {
    graphs.push_back({"rows", testing::random_graph(rows, 200, 9 * rows, 3, false)});
  }
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    for (const Side side : {Side::forward, Side::transposed}) {
      const TiledGraph tiled = translate(named.graph, dot_step_rows, side);
      const Graph rows = side == Side::forward ? named.graph : transposed(named.graph);
      for (const int run_steps : {1, 4}) {
        expect_every_edge_once(rows, tiled, make_dot_steps(named.graph, tiled, run_steps, side));
      }
    }
  }
}

TEST(DotSteps, EndWithARunWithoutSteps) {
  const Graph graph = testing::random_graph(40, 40, 300, 5, false);
  const DotSteps dots = make_dot_steps(graph, translate(graph, 16), 2, Side::forward);
  EXPECT_EQ(dots.runs.back(), DotRun{});
  EXPECT_EQ(dots.places.size(), 8 * dots.runs.size());
  for (int row = 0; row < 8; ++row) {
    EXPECT_EQ(dots.places[dots.places.size() - 1 - row], DotPlaces{});
  }
}

TEST(DotSteps, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(9000, 9000, 40000, 5, false);
  const auto made_with = [&](int threads) {
    const testing::ThreadScope scope(threads);
    return make_dot_steps(graph, translate(graph, 16), 4, Side::forward);
  };
  EXPECT_EQ(made_with(1), made_with(3));
}

}  // namespace
}  // namespace tessera::tiles
