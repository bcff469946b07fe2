// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/tile_lists.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "support/odd_graphs.hpp"
#include "support/random_coo.hpp"

namespace tessera::ops {
namespace {

/// Follows every list as a kernel does: each edge is named once, by its row and its column.
template <int height>
void expect_every_edge_once(const Graph& graph) {
  SCOPED_TRACE(height);
  const TileLists<height> lists = make_tile_lists<height>(graph);
  std::vector<int> times(static_cast<std::size_t>(graph.num_edges()));
  for (const DotTile<height>& tile : lists.tiles.span()) {
    for (int strip = 0; strip < DotTile<height>::num_strips; ++strip) {
      const std::int64_t block = tile.first_blocks[strip];
      for (int number = 0; number < tile.counts[strip]; ++number) {
        const int within = number % code_block_edges;
        const std::uint32_t word =
            lists.codes[(block + number / code_block_edges) * code_block_words +
                        within % code_block_words];
        const std::uint32_t code = within < code_block_words ? word & 0xffff : word >> 16;
        const auto column = static_cast<int>(code % dot_tile_columns);
        const int row = strip * strip_rows + static_cast<int>(code / dot_tile_columns);
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

TEST(TileLists, NameEveryEdgeOnce) {
  std::vector<testing::NamedGraph> graphs = testing::odd_patterns();
  for (const VertexId rows : {63, 64, 65, 127, 128, 129, 300}) {
    graphs.push_back({"rows", testing::random_graph(rows, 200, 9 * rows, 3, false)});
  }
  for (const testing::NamedGraph& named : graphs) {
    SCOPED_TRACE(named.name);
    expect_every_edge_once<64>(named.graph);
    expect_every_edge_once<128>(named.graph);
  }
}

TEST(TileLists, MarkWhereWindowsBegin) {
  const Graph graph = testing::random_graph(300, 500, 4000, 4, false);
  const TileLists<64> lists = make_tile_lists<64>(graph);
  VertexId last = -1;
  for (const DotTile<64>& tile : lists.tiles.span()) {
    EXPECT_EQ(tile.first_of_window != 0, tile.first_row != last);
    last = tile.first_row;
  }
}

TEST(TileLists, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(9000, 9000, 40000, 5, false);
  const auto made_with = [&](int threads) {
    const testing::ThreadScope scope(threads);
    return make_tile_lists<64>(graph);
  };
  const TileLists<64> one = made_with(1);
  const TileLists<64> three = made_with(3);
  ASSERT_EQ(one.tiles.size(), three.tiles.size());
  ASSERT_EQ(one.codes.size(), three.codes.size());
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.data(), b.data(), a.span().size_bytes()) == 0;
  };
  EXPECT_TRUE(same(one.tiles, three.tiles));
  EXPECT_TRUE(same(one.codes, three.codes));
}

}  // namespace
}  // namespace tessera::ops
