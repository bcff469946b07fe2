// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/quad_tiles.hpp"

#include <algorithm>
#include <ostream>
#include <vector>

#include <fmt/format.h>

#include "tiles/quad_fragment.hpp"
#include "tiles/window_tiles.hpp"

namespace tessera::tiles {
namespace {

constexpr int quads_per_tile = 2 * quads_per_step;

void check_indices(const QuadTiles& tiles, std::int64_t w) {
  const std::int64_t strips = tiles.height / 16;
  for (std::int64_t strip = tiles.tile_offsets[w] * strips;
       strip < tiles.tile_offsets[w + 1] * strips; ++strip) {
    for (int word = 0; word < 32; ++word) {
      const std::uint32_t indices = tiles.words[strip * quad_strip_words + word];
      for (int shift = 0; shift < 32; shift += 4) {
        require((indices >> shift & 3u) < (indices >> (shift + 2) & 3u), "words",
                fmt::format("indices that do not rise in window {}", w));
      }
    }
  }
}

/// Calls body(column) for every edge of a row, in the order of the tiles.
template <class Body>
void for_edges_of(const QuadTiles& tiles, std::int64_t row, Body&& body) {
  const std::int64_t w = row / tiles.height;
  const EdgeOffset steps = tiles.step_offsets[w + 1] - tiles.step_offsets[w];
  for (EdgeOffset q = 0; q < steps * quads_per_step; ++q) {
    const unsigned used = tiles.used_columns(tiles.tile_offsets[w] + q / quads_per_tile,
                                             static_cast<int>(row % tiles.height),
                                             static_cast<int>(q % quads_per_tile));
    for (int i = 0; i < quad_columns; ++i) {
      if ((used >> i & 1u) == 0) continue;
      body(tiles.columns[tiles.step_offsets[w] * quad_step_columns + q * quad_columns + i]);
    }
  }
}

EdgeOffset count_bits(const QuadTiles& tiles, std::int64_t w) {
  EdgeOffset bits = 0;
  const std::int64_t strips = tiles.height / 16;
  for (std::int64_t strip = tiles.tile_offsets[w] * strips;
       strip < tiles.tile_offsets[w + 1] * strips; ++strip) {
    for (int word = 32; word < quad_strip_words; ++word) {
      bits += std::popcount(tiles.words[strip * quad_strip_words + word]);
    }
  }
  return bits;
}

/// Returns the number of edges of a window.
EdgeOffset check_rows(const QuadTiles& tiles, std::int64_t w) {
  const std::int64_t first = w * tiles.height;
  const std::int64_t last = std::min<std::int64_t>(tiles.num_rows, first + tiles.height);
  EdgeOffset edges = 0;
  std::vector<VertexId> columns;
  for (std::int64_t row = first; row < last; ++row) {
    columns.clear();
    for_edges_of(tiles, row, [&](VertexId column) { columns.push_back(column); });
    std::sort(columns.begin(), columns.end());
    require(std::adjacent_find(columns.begin(), columns.end()) == columns.end(), "words",
            fmt::format("row {} has an edge twice", row));
    edges += static_cast<EdgeOffset>(columns.size());
  }
  require(count_bits(tiles, w) == edges, "words",
          fmt::format("a bit outside the graph in window {}", w));
  return edges;
}

}  // namespace

unsigned QuadTiles::used_columns(std::int64_t tile, int row, int quad) const noexcept {
  const std::int64_t strip = (tile * (height / 16) + row / 16) * quad_strip_words;
  const QuadPlace place = quad_place(row % 16, quad);
  const std::uint32_t indices = words[strip + place.index_word] >> place.index_shift;
  const std::uint32_t bits = words[strip + place.bit_word] >> place.bit;
  return (bits & 1u) << (indices & 3u) | (bits >> 8 & 1u) << (indices >> 2 & 3u);
}

void QuadTiles::validate() const {
  require(std::find(quad_heights.begin(), quad_heights.end(), height) != quad_heights.end(),
          "height", fmt::format("windows of {} rows do not exist", height));
  check_sizes(*this, quad_step_columns, words_per_tile());
  for (const VertexId column : columns) {
    require(column >= 0 && column < num_cols, "columns",
            fmt::format("column {} of a graph with {}", column, num_cols));
  }
  check_edges(*this, [&](std::int64_t w) {
    check_indices(*this, w);
    return check_rows(*this, w);
  });
}

std::ostream& operator<<(std::ostream& out, const QuadTiles& tiles) {
  return out << fmt::format("{} x {} with {} edges in {} windows of {} rows: {} quads, {} steps",
                            tiles.num_rows, tiles.num_cols, tiles.num_edges, tiles.num_windows(),
                            tiles.height, tiles.num_quads, tiles.num_steps());
}

Graph to_graph(const QuadTiles& tiles) {
  return graph_of(tiles, [&](std::int64_t row, auto&& body) { for_edges_of(tiles, row, body); });
}

}  // namespace tessera::tiles
