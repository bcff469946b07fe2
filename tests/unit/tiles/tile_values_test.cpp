// SPDX-License-Identifier: Apache-2.0
#include "tiles/tile_values.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "tessera/core/error.hpp"
#include "tiles/fragment.hpp"
#include "tiles/stages.hpp"

namespace tessera::tiles {
namespace {

using testing::NamedGraph;

std::vector<NamedGraph> graphs() {
  std::vector<NamedGraph> named = testing::odd_patterns();
  for (const VertexId n : {15, 16, 17, 63, 64, 65, 127, 129}) {
    named.push_back({"square " + std::to_string(n), testing::random_graph(n, n, 9 * n, 3, false)});
    named.push_back({"row of " + std::to_string(n), testing::hub_graph(70, n, 4)});
  }
  return named;
}

/// The entry of a row and a column of a tile: those of its word before it are counted bit by bit.
std::int64_t entry_of(const TiledGraph& tiled, const ValueLayout& layout, EdgeOffset tile, int row,
                      int column) {
  const BitPlace at = bit_place(tiled.height, row, column);
  const std::int64_t word = tile * tiled.words_per_tile() + at.word;
  const int half = column / 32;
  std::int64_t entry = std::int64_t{layout.unit_offsets[2 * tile]} * value_unit +
                       (layout.starts[word] >> (16 * half) & 0xffffu);
  const int pair = at.bit % 16;
  for (int before = 8 * half; before < pair; ++before) {
    entry += (tiled.words[word] >> before & 1u) + (tiled.words[word] >> (before + 16) & 1u);
  }
  return entry + (at.bit >= 16 ? tiled.words[word] >> pair & 1u : 0u);
}

void expect_every_edge(const Graph& graph, const TiledGraph& tiled, Side side) {
  const ValueLayout layout = place_values(graph, tiled, side);
  const Graph multiplied = side == Side::forward ? graph : transposed(graph);
  std::vector<float> numbers(static_cast<std::size_t>(graph.num_edges()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Graph numbered = graph.with_values(SharedArray<float>(numbers));
  const Graph expected = side == Side::forward ? numbered : transposed(numbered);
  std::int64_t found = 0;
  for (std::int64_t w = 0; w < tiled.num_windows(); ++w) {
    for (EdgeOffset tile = tiled.tile_offsets[w]; tile < tiled.tile_offsets[w + 1]; ++tile) {
      const std::int64_t first =
          tiled.step_offsets[w] * step_columns + (tile - tiled.tile_offsets[w]) * tile_columns;
      for (int row = 0; row < tiled.height; ++row) {
        for (int column = 0; column < tile_columns; ++column) {
          if (!tiled.has_edge(tile, row, column)) continue;
          const auto target = static_cast<VertexId>(w * tiled.height + row);
          const auto sources = expected.neighbours(target);
          const auto at =
              std::lower_bound(sources.begin(), sources.end(), tiled.columns[first + column]) -
              sources.begin();
          const float number = expected.values()[expected.row_offsets()[target] + at];
          ASSERT_EQ(layout.edges[entry_of(tiled, layout, tile, row, column)],
                    static_cast<std::int32_t>(number));
          ++found;
        }
      }
    }
  }
  EXPECT_EQ(found, multiplied.num_edges());
  const auto filled = std::count(layout.edges.begin(), layout.edges.end(), -1);
  EXPECT_EQ(layout.edges.size() - filled, graph.num_edges());
  EXPECT_LE(filled, 6 * tiled.num_tiles() + multiplied.num_edges());
}

TEST(TileValues, HaveAnEntryForEveryEdge) {
  for (const NamedGraph& named : graphs()) {
    SCOPED_TRACE(named.name);
    for (const int height : {16, 64, 128, 256}) {
      SCOPED_TRACE(height);
      for (const Side side : {Side::forward, Side::transposed}) {
        expect_every_edge(named.graph, translate(named.graph, height, side), side);
      }
    }
  }
}

TEST(TileValues, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(3000, 700, 40000, 7, false);
  const auto placed_with = [&](int threads) {
    const testing::ThreadScope scope(threads);
    return place_values(graph, translate(graph, 64), Side::forward);
  };
  const ValueLayout layout = placed_with(1);
  for (const int threads : {2, 3}) EXPECT_EQ(layout, placed_with(threads)) << threads << " threads";
}

TEST(TileValues, ArePackedInTheFormOfAPrecision) {
  const Graph graph = testing::random_graph(150, 90, 2000, 8, false);
  const ValueLayout layout = place_values(graph, translate(graph, 64), Side::forward);
  SharedArray<float> drawn =
      testing::random_values(graph.num_edges(), testing::NumberKind::normal, 9);
  std::vector<float> values(drawn.begin(), drawn.end());
  values[3] = std::numeric_limits<float>::max();
  const auto exact = pack_values(layout, values, Precision::fp32);
  const auto in_bf16 = pack_values(layout, values, Precision::bf16);
  const auto in_fp16 = pack_values(layout, values, Precision::fp16);
  const auto sum_of = []<class T>(T, std::uint32_t entry) {
    T high, low;
    high.bits = static_cast<std::uint16_t>(entry);
    low.bits = static_cast<std::uint16_t>(entry >> 16);
    return static_cast<double>(high) + static_cast<double>(low);
  };
  for (std::int64_t i = 0; i < layout.edges.size(); ++i) {
    const std::int32_t edge = layout.edges[i];
    if (edge < 0) {
      EXPECT_EQ(exact[i] | in_bf16[i] | in_fp16[i], 0u);
      continue;
    }
    const float value = values[static_cast<std::size_t>(edge)];
    const double size = std::abs(static_cast<double>(value));
    EXPECT_EQ(std::bit_cast<float>(exact[i]), value);
    EXPECT_LE(std::abs(sum_of(Bfloat16{}, in_bf16[i]) - value), 0x1p-17 * size);
    if (edge == 3) continue;  // too large for fp16
    EXPECT_LE(std::abs(sum_of(Float16{}, in_fp16[i]) - value), 0x1p-22 * size + 1e-7);
  }
}

/// Stages of a tile and of half a tile bring exactly the units of their steps.
TEST(TileValues, AreFoundByStages) {
  const Graph graph = testing::random_graph(300, 280, 6000, 10, false);
  const TiledGraph tiled = translate(graph, 64);
  const ValueLayout layout = place_values(graph, tiled, Side::forward);
  for (const int max_steps : {2, 4}) {
    const StageLists lists = make_stages(make_pieces(tiled, {3, 32}), max_steps);
    const std::vector<StageValues> values = stage_values(lists, layout.unit_offsets.span());
    const std::int32_t most = most_stage_units(layout.unit_offsets.span(), max_steps);
    std::int64_t units = 0;
    ASSERT_EQ(values.size(), lists.stages.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      units += values[i].num_units;
      EXPECT_LE(values[i].num_units, most);
      EXPECT_EQ(values[i].skipped > 0, lists.stages[i].bit_shift > 0);
    }
    EXPECT_EQ(units, layout.unit_offsets.back());
  }
}

TEST(TileValues, NeedWindowsOfSixteenRows) {
  const Graph graph = testing::path_graph(20);
  testing::expect_error(ErrorCode::unsupported, {"8 rows"},
                        [&] { place_values(graph, translate(graph, 8), Side::forward); });
}

}  // namespace
}  // namespace tessera::tiles
