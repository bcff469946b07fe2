// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/quad_tiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"
#include "tiles/quad_fragment.hpp"
#include "tiles/quad_order.hpp"
#include "tiles/quad_values.hpp"

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::expect_error;
using tiles::QuadTiles;
using tiles::Side;

Graph pattern_of(const Graph& graph) {
  return Graph(graph.num_rows(), graph.num_cols(), graph.row_offsets(), graph.col_indices());
}

std::int64_t row_of(const Graph& graph, EdgeOffset edge) {
  const auto& offsets = graph.row_offsets();
  return std::upper_bound(offsets.begin(), offsets.end(), edge) - offsets.begin() - 1;
}

TEST(QuadFragment, GivesEveryRowAndQuadAPlaceOfItsOwn) {
  std::set<std::pair<int, int>> indices;
  std::set<std::pair<int, int>> bits;
  for (int row = 0; row < 16; ++row) {
    for (int quad = 0; quad < 16; ++quad) {
      const tiles::QuadPlace place = tiles::quad_place(row, quad);
      for (int i = 0; i < 4; ++i) indices.emplace(place.index_word, place.index_shift + i);
      bits.emplace(place.bit_word, place.bit);
      bits.emplace(place.bit_word, place.bit + 8);
    }
  }
  EXPECT_EQ(indices.size(), 32u * 32);
  EXPECT_EQ(bits.size(), 16u * 32);
  EXPECT_EQ(indices.rbegin()->first, 31);
  EXPECT_EQ(bits.begin()->first, 32);
  EXPECT_EQ(bits.rbegin()->first, 47);
}

TEST(QuadFragment, StandsWhereTheInstructionReads) {
  // Row 11 is the high half of the lanes 12 to 15; its quad 6 of step 1 is in the second 16
  // columns.
  const tiles::QuadPlace place = tiles::quad_place(11, 8 + 6);
  EXPECT_EQ(place.index_word, 4 * 3 + 2 * 1 + 1);
  EXPECT_EQ(place.index_shift, 16 + 4 * 2);
  EXPECT_EQ(place.bit_word, 32 + (4 * 3 + 2) / 2);
  EXPECT_EQ(place.bit, 4 * 1 + 3);  // lane 14 is even; register 3: row g + 8, quad q + 4
}

TEST(QuadFragment, WritesEverySetOfTwoColumns) {
  for (unsigned used = 0; used < 16; ++used) {
    if (std::popcount(used) > 2) continue;
    const tiles::QuadEntries entries = tiles::quad_entries(used);
    const unsigned first = entries.indices & 3u;
    const unsigned second = entries.indices >> 2;
    EXPECT_LT(first, second);
    EXPECT_EQ((entries.present & 1u) << first | (entries.present >> 1u & 1u) << second, used);
  }
}

TEST(QuadOrder, TakesEveryColumnOnceInSegmentsOfAboutTheSameLength) {
  for (const std::int32_t columns : {0, 1, 3, 8, 9, 63, 383, 384, 385, 769, 5000}) {
    SCOPED_TRACE(columns);
    const tiles::QuadOrder order{columns};
    std::set<std::int32_t> taken;
    for (std::int32_t place = 0; place < columns; ++place) taken.insert(order.column(place));
    EXPECT_EQ(taken.size(), static_cast<std::size_t>(columns));
    if (columns == 0) continue;
    EXPECT_EQ(*taken.begin(), 0);
    EXPECT_EQ(*taken.rbegin(), columns - 1);
    EXPECT_EQ(order.first_place(0), 0);
    EXPECT_EQ(order.first_place(order.num_segments()), columns);
    for (std::int32_t segment = 0; segment < order.num_segments(); ++segment) {
      const std::int32_t length = order.first_place(segment + 1) - order.first_place(segment);
      EXPECT_LE(length, tiles::segment_columns);
      EXPECT_LE(std::abs(length - columns / order.num_segments()), 2 * tiles::order_parts);
      EXPECT_EQ(order.first_place(segment) % tiles::order_parts, 0);
    }
  }
}

class QuadHeights : public ::testing::TestWithParam<int> {};

TEST_P(QuadHeights, HoldTheWholeGraph) {
  for (const auto& [name, graph] : testing::odd_patterns()) {
    for (const Side side : {Side::forward, Side::transposed}) {
      SCOPED_TRACE(name + ", " + to_string(side));
      const QuadTiles made = tiles::translate_quads(graph, GetParam(), side);
      made.validate();
      EXPECT_EQ(to_graph(made),
                pattern_of(side == Side::forward ? graph : transposed(pattern_of(graph))));
    }
  }
}

/// Every edge has one entry, where its row and column are.
TEST_P(QuadHeights, PlaceAValueForEveryEdge) {
  const int strips = GetParam() / 16;
  for (const auto& [name, graph] : testing::odd_patterns()) {
    for (const Side side : {Side::forward, Side::transposed}) {
      SCOPED_TRACE(name + ", " + to_string(side));
      const QuadTiles quads = tiles::translate_quads(graph, GetParam(), side);
      const auto places = tiles::place_quad_values(graph, quads, side);
      ASSERT_EQ(places.size(), quads.num_steps() * strips * 32 * tiles::quad_lane_values);
      std::vector<int> entries(static_cast<std::size_t>(graph.num_edges()));
      for (std::int64_t window = 0; window < quads.num_windows(); ++window) {
        for (EdgeOffset step = quads.step_offsets[window]; step < quads.step_offsets[window + 1];
             ++step) {
          for (int i = 0; i < strips * 32 * 4; ++i) {
            const tiles::QuadRegister at = tiles::quad_register(i % 128 / 4, i % 4);
            const std::int64_t row = window * GetParam() + i / 128 * 16 + at.row;
            for (int which = 0; which < 2; ++which) {
              const std::int32_t edge = places[(step * strips * 128 + i) * 2 + which];
              if (edge < 0) continue;
              ++entries[static_cast<std::size_t>(edge)];
              const std::int64_t target = row_of(graph, edge);
              const VertexId source = graph.col_indices()[edge];
              EXPECT_EQ(side == Side::forward ? target : source, row);
              const auto* const quad = quads.columns.data() + step * 32 + at.quad * 4;
              EXPECT_NE(std::find(quad, quad + 4, side == Side::forward ? source : target),
                        quad + 4);
            }
          }
        }
      }
      EXPECT_TRUE(std::all_of(entries.begin(), entries.end(), [](int n) { return n == 1; }));
    }
  }
}

TEST_P(QuadHeights, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = testing::random_graph(5000, 3000, 40000, 3, false);
  set_num_threads(1);
  const QuadTiles one = tiles::translate_quads(graph, GetParam());
  set_num_threads(4);
  const QuadTiles four = tiles::translate_quads(graph, GetParam());
  set_num_threads(0);
  EXPECT_EQ(one, four);
}

TEST_P(QuadHeights, TakeNoMoreQuadsThanTheLongestRowNeeds) {
  // One row uses all of 101 columns: 51 quads hold two of them each.
  std::vector<VertexId> columns(101);
  for (VertexId i = 0; i < 101; ++i) columns[static_cast<std::size_t>(i)] = i;
  const Graph hub(1, 101, std::vector<EdgeOffset>{0, 101}, std::move(columns));
  EXPECT_EQ(tiles::translate_quads(hub, GetParam()).num_quads, 51);
}

TEST_P(QuadHeights, PadLittleWhereRowsAreShort) {
  const Graph band = testing::grid_graph(64, 64);
  const QuadTiles made = tiles::translate_quads(band, GetParam());
  std::int64_t columns = 0;
  for (VertexId first = 0; first < band.num_rows(); first += GetParam()) {
    std::set<VertexId> distinct;
    for (VertexId row = first; row < std::min(first + GetParam(), band.num_rows()); ++row) {
      distinct.insert(band.neighbours(row).begin(), band.neighbours(row).end());
    }
    columns += static_cast<std::int64_t>((distinct.size() + 3) / 4);
  }
  EXPECT_EQ(made.num_quads, columns);
}

INSTANTIATE_TEST_SUITE_P(Heights, QuadHeights, ::testing::ValuesIn(tiles::quad_heights));

/// A third of the pairs of rows and columns are edges: two columns always fit together, a third one
/// seldom does, and must find a quad that still waits for it.
TEST(QuadTiles, FindThirdColumnsInDenseWindows) {
  constexpr VertexId columns = 1325;
  const Graph dense = testing::random_graph(128, columns, 128 * columns * 2 / 5, 8, false);
  ASSERT_NEAR(static_cast<double>(dense.num_edges()) / (128 * columns), 0.33, 0.01);
  const std::int64_t pairs = columns / 2;
  EXPECT_LT(tiles::translate_quads(dense, 128).num_quads, pairs * 7 / 8);
}

TEST(QuadTiles, RejectWhatIsDamaged) {
  const QuadTiles good = tiles::translate_quads(testing::grid_graph(9, 9), 16);
  const auto damaged = [&](auto&& damage) {
    QuadTiles tiles = good;
    damage(tiles);
    return tiles;
  };
  const auto with_word = [](QuadTiles& tiles, std::int64_t i, std::uint32_t word) {
    std::vector<std::uint32_t> words(tiles.words.begin(), tiles.words.end());
    words[static_cast<std::size_t>(i)] = word;
    tiles.words = std::move(words);
  };
  expect_error(ErrorCode::bad_data, {"rise"},
               [&] { damaged([&](QuadTiles& t) { with_word(t, 0, 0); }).validate(); });
  expect_error(ErrorCode::bad_data, {"words"},
               [&] { damaged([&](QuadTiles& t) { with_word(t, 32, ~t.words[32]); }).validate(); });
  expect_error(ErrorCode::bad_data, {"edges"},
               [&] { damaged([](QuadTiles& t) { ++t.num_edges; }).validate(); });
  expect_error(ErrorCode::bad_data, {"column"},
               [&] { damaged([](QuadTiles& t) { t.num_cols = 3; }).validate(); });
  expect_error(ErrorCode::invalid_argument, {"24"},
               [] { tiles::translate_quads(testing::path_graph(5), 24); });
}

}  // namespace
}  // namespace tessera
