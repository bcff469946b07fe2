// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_tiles.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::tiles {
namespace {

DotTiles made(const Graph& graph, Side side = Side::forward) {
  return make_dot_tiles(graph, translate(graph, dot_tile_height, side), side);
}

/// Follows every list as a kernel does: each edge is named once, by its row and its column.
void expect_every_edge_once(const Graph& graph, const DotTiles& dots) {
  std::vector<int> times(static_cast<std::size_t>(graph.num_edges()));
  for (const DotTile& tile : dots.tiles) {
    for (int strip = 0; strip < dot_tile_strips; ++strip) {
      const std::int64_t block = tile.first_blocks[strip];
      for (int number = 0; number < tile.counts[strip]; ++number) {
        const int within = number % code_block_edges;
        const std::uint32_t word =
            dots.codes[(block + number / code_block_edges) * code_block_words +
                       within % code_block_words];
        const std::uint32_t code = within < code_block_words ? word & 0xffff : word >> 16;
        const auto column = static_cast<int>(code % tile_columns);
        const int row = strip * strip_rows + static_cast<int>(code / tile_columns);
        const EdgeOffset edge = tile.first_edge + number + tile.shifts[row];
        ASSERT_LT(column, tile.num_columns);
        ASSERT_GE(edge, graph.row_offsets()[tile.first_row + row]);
        ASSERT_LT(edge, graph.row_offsets()[tile.first_row + row + 1]);
        EXPECT_EQ(graph.col_indices()[edge], tile.columns[column]);
        ++times[static_cast<std::size_t>(edge)];
      }
    }
  }
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), graph.num_edges());
}

TEST(DotTiles, NameEveryEdgeOnce) {
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  for (const VertexId rows : {0, 1, 63, 64, 65, 127, 128, 129, 300}) {
    graphs.push_back({"rows", testing::random_graph(rows, 200, 9 * rows, 3, false)});
  }
  graphs.push_back({"dense", testing::random_graph(70, 130, 6000, 3, false)});
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    expect_every_edge_once(named.graph, made(named.graph));
    expect_every_edge_once(transposed(named.graph), made(named.graph, Side::transposed));
  }
}

TEST(DotTiles, MarkWhereWindowsBegin) {
  const DotTiles dots = made(testing::random_graph(300, 500, 4000, 4, false));
  VertexId last = -1;
  for (const DotTile& tile : dots.tiles) {
    EXPECT_EQ(tile.first_of_window != 0, tile.first_row != last);
    last = tile.first_row;
  }
}

TEST(DotTiles, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(9000, 9000, 40000, 5, false);
  const auto made_with = [&](int threads) {
    const testing::ThreadScope scope(threads);
    return made(graph);
  };
  EXPECT_EQ(made_with(1), made_with(3));
}

/// Rooms for codes are asked for before it is known how many there are.
TEST(DotTiles, HaveAtMostAsManyBlocksAsIsSaid) {
  for (const int edges : {1, 40, 900, 9000}) {
    const Graph graph = testing::random_graph(200, 190, edges, 6, false);
    const DotTiles dots = made(graph);
    const std::int64_t blocks = dots.codes.size() / code_block_words;
    EXPECT_LE(blocks, most_code_blocks(graph.num_edges(), dots.tiles.size()));
    EXPECT_GE(blocks * code_block_edges, graph.num_edges());
  }
  EXPECT_EQ(most_code_blocks(0, 0), 0);
  testing::expect_error(ErrorCode::unsupported, {"tiles"},
                        [] { most_code_blocks(1, std::int64_t{1} << 31); });
}

}  // namespace
}  // namespace tessera::tiles
