// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/tiled_graph.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"
#include "tiles/fragment.hpp"

namespace tessera::tiles {
namespace {

using testing::expect_error;
using testing::NamedGraph;

/// Shapes at the edges of steps, strips, tiles and windows, and the graphs kernels break on.
std::vector<NamedGraph> graphs() {
  std::vector<NamedGraph> named = testing::odd_patterns();
  for (const VertexId n : {0, 1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257}) {
    named.push_back({"square " + std::to_string(n), testing::random_graph(n, n, 9 * n, 3, false)});
    named.push_back({"wide " + std::to_string(n), testing::random_graph(n, 130, 5 * n, 4, false)});
    named.push_back({"tall " + std::to_string(n), testing::random_graph(130, n, 5 * n, 5, false)});
  }
  // Row 0 of every window has exactly n columns: steps and tiles end there.
  for (const VertexId n : {15, 16, 17, 63, 64, 65}) {
    named.push_back({"row of " + std::to_string(n), testing::hub_graph(1, n, 6)});
  }
  return named;
}

TEST(TiledGraph, HoldsTheEdgesItWasMadeOf) {
  for (const NamedGraph& named : graphs()) {
    SCOPED_TRACE(named.name);
    for (const int height : window_heights) {
      SCOPED_TRACE(height);
      const TiledGraph tiled = translate(named.graph, height);
      EXPECT_NO_THROW(tiled.validate());
      EXPECT_EQ(to_graph(tiled), named.graph);
      const TiledGraph back = translate(named.graph, height, Side::transposed);
      EXPECT_NO_THROW(back.validate());
      EXPECT_EQ(to_graph(back), transposed(named.graph));
    }
  }
}

TEST(TiledGraph, IsTheSameForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(5000, 700, 40000, 7, false);
  const auto tiled_with = [&](int threads) {
    const testing::ThreadScope scope(threads);
    return translate(graph, 64);
  };
  const TiledGraph tiled = tiled_with(1);
  for (const int threads : {2, 3}) EXPECT_EQ(tiled, tiled_with(threads)) << threads << " threads";
}

TEST(TiledGraph, SplitsByHowManyRowsShareAColumn) {
  for (const NamedGraph& named : graphs()) {
    SCOPED_TRACE(named.name);
    for (const int min_uses : {1, 2, 3, 1000}) {
      SCOPED_TRACE(min_uses);
      const SplitGraph split = translate_dense(named.graph, 64, min_uses);
      EXPECT_NO_THROW(split.dense.validate());
      EXPECT_NO_THROW(split.rest.validate());
      EXPECT_EQ(split.dense.num_edges + split.rest.num_edges(), named.graph.num_edges());
      auto entries = testing::entries_of(split.rest);
      entries.merge(testing::entries_of(to_graph(split.dense)));
      EXPECT_EQ(entries, testing::entries_of(named.graph));
    }
  }
  const SplitGraph none_dense = translate_dense(testing::hub_graph(5, 450, 8), 64, 6);
  EXPECT_EQ(none_dense.dense.num_edges, 0);
  expect_error(ErrorCode::invalid_argument, {"min_uses"},
               [] { translate_dense(testing::path_graph(3), 64, 0); });
}

TEST(TiledGraph, DoesNotCopyWeights) {
  const Graph weighted = testing::random_graph(40, 40, 200, 9, true);
  EXPECT_EQ(translate(weighted, 64), translate(weighted.with_values({}), 64));
}

TEST(TiledGraph, RefusesOtherHeights) {
  for (const int height : {0, 1, 7, 24, 512, -8}) {
    expect_error(ErrorCode::invalid_argument, {"height"},
                 [&] { translate(testing::path_graph(3), height); });
  }
}

/// Every field of valid tiles in turn is made wrong.
TEST(TiledGraph, ValidateFindsWhatIsWrong) {
  const Graph graph = testing::random_graph(100, 90, 900, 10, false);
  const TiledGraph valid = translate(graph, 64);
  const auto words_with = [&](std::int64_t at, std::uint32_t flipped) {
    std::vector<std::uint32_t> words(valid.words.begin(), valid.words.end());
    words[static_cast<std::size_t>(at)] ^= flipped;
    return SharedArray<std::uint32_t>(std::move(words));
  };
  const auto columns_with = [&](std::int64_t at, VertexId column) {
    std::vector<VertexId> columns(valid.columns.begin(), valid.columns.end());
    columns[static_cast<std::size_t>(at)] = column;
    return SharedArray<VertexId>(std::move(columns));
  };
  const auto expect_bad = [](const TiledGraph& tiled, const std::string& array) {
    expect_error(ErrorCode::bad_data, {array}, [&] { tiled.validate(); });
  };
  TiledGraph wrong = valid;
  wrong.num_edges += 1;
  expect_bad(wrong, "words");
  wrong = valid;
  wrong.words = words_with(0, 1u << 5);
  expect_bad(wrong, "words");
  // Row 50 of the second window: the graph ends after 36.
  wrong = valid;
  wrong.words = words_with(valid.tile_offsets[1] * 128 + bit_place(64, 50, 0).word,
                           1u << bit_place(64, 50, 0).bit);
  expect_bad(wrong, "words");
  wrong = valid;
  wrong.columns = columns_with(3, 90);
  expect_bad(wrong, "columns");
  wrong = valid;
  wrong.columns = columns_with(3, valid.columns[1]);
  expect_bad(wrong, "columns");
  wrong = valid;
  wrong.step_offsets = std::vector<EdgeOffset>{0, valid.step_offsets[2], valid.step_offsets[1]};
  expect_bad(wrong, "_offsets");
  wrong = valid;
  wrong.tile_offsets = std::vector<EdgeOffset>{0, 1, valid.tile_offsets[2]};
  expect_bad(wrong, "tile_offsets");
  wrong = valid;
  wrong.num_rows = 200;
  expect_bad(wrong, "step_offsets");
}

TEST(TiledGraph, SaysWhatItIs) {
  std::ostringstream text;
  text << translate(testing::path_graph(100), 64);
  EXPECT_EQ(text.str(), "100 x 100 with 198 edges in 2 windows of 64 rows: 3 tiles, 8 steps");
}

/// The matrix instructions define which lane holds what; here from their own numbering.
TEST(TiledGraph, BitsStandWhereLanesWantThem) {
  for (int row = 0; row < 128; ++row) {
    for (int column = 0; column < tile_columns; ++column) {
      // wgmma: warp = 16 rows; a0..a3 = (row, k), (row + 8, k), (row, k + 8), (row + 8, k + 8).
      const BitPlace tall = bit_place(128, row, column);
      const int group_id = tall.word % 32 / 4;
      const int id_in_group = tall.word % 4;
      const int pair = tall.bit % 16;
      const int reg = pair % 4;
      EXPECT_EQ(row, tall.word / 32 * 16 + group_id + (reg % 2) * 8);
      EXPECT_EQ(column, pair / 4 * 16 + id_in_group * 2 + tall.bit / 16 + (reg / 2) * 8);
      if (row >= 8) continue;
      // mma, swapped: b0, b1 = (k, row), (k + 8, row).
      const BitPlace low = bit_place(8, row, column);
      const int lane = low.word * 2 + low.bit / 16;
      const int bit = low.bit % 16;
      EXPECT_EQ(row, lane / 4);
      EXPECT_EQ(column, bit % 8 / 2 * 16 + lane % 4 * 2 + bit / 8 + bit % 2 * 8);
    }
  }
}

}  // namespace
}  // namespace tessera::tiles
