// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/quad_tiles.hpp"

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/quad_fragment.hpp"

namespace tessera::tiles {
namespace {

constexpr int quads_per_tile = 2 * quads_per_step;

void require(bool holds, const char* array, const std::string& problem) {
  if (holds) return;
  throw Error(ErrorCode::bad_data, "2:4 tiles contradict themselves: " + problem, array,
              "translate the graph again");
}

void check_sizes(const QuadTiles& tiles) {
  require(std::find(quad_heights.begin(), quad_heights.end(), tiles.height) != quad_heights.end(),
          "height", fmt::format("windows of {} rows do not exist", tiles.height));
  require(tiles.num_rows >= 0 && tiles.num_cols >= 0, "shape", "a negative number of vertices");
  const auto windows = (std::int64_t{tiles.num_rows} + tiles.height - 1) / tiles.height;
  require(tiles.step_offsets.size() == windows + 1, "step_offsets", "not one for each window");
  require(tiles.tile_offsets.size() == windows + 1, "tile_offsets", "not one for each window");
  require(tiles.step_offsets[0] == 0 && tiles.tile_offsets[0] == 0, "offsets",
          "the first is not 0");
  for (std::int64_t w = 0; w < windows; ++w) {
    const EdgeOffset steps = tiles.step_offsets[w + 1] - tiles.step_offsets[w];
    require(steps >= 0, "step_offsets", fmt::format("they fall at window {}", w));
    require(tiles.tile_offsets[w + 1] - tiles.tile_offsets[w] == (steps + 1) / 2, "tile_offsets",
            fmt::format("not a tile for two steps in window {}", w));
  }
  require(tiles.columns.size() == tiles.num_steps() * quad_step_columns, "columns",
          "not 32 a step");
  require(tiles.words.size() == tiles.num_tiles() * tiles.words_per_tile(), "words",
          fmt::format("not {} a tile", tiles.words_per_tile()));
  for (const VertexId column : tiles.columns) {
    require(column >= 0 && column < tiles.num_cols, "columns",
            fmt::format("column {} of a graph with {}", column, tiles.num_cols));
  }
}

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
EdgeOffset check_edges(const QuadTiles& tiles, std::int64_t w) {
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

std::int64_t QuadTiles::num_bytes() const noexcept {
  return (step_offsets.size() + tile_offsets.size()) *
             static_cast<std::int64_t>(sizeof(EdgeOffset)) +
         columns.size() * static_cast<std::int64_t>(sizeof(VertexId)) +
         words.size() * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

unsigned QuadTiles::used_columns(std::int64_t tile, int row, int quad) const noexcept {
  const std::int64_t strip = (tile * (height / 16) + row / 16) * quad_strip_words;
  const QuadPlace place = quad_place(row % 16, quad);
  const std::uint32_t indices = words[strip + place.index_word] >> place.index_shift;
  const std::uint32_t bits = words[strip + place.bit_word] >> place.bit;
  return (bits & 1u) << (indices & 3u) | (bits >> 8 & 1u) << (indices >> 2 & 3u);
}

void QuadTiles::validate() const {
  check_sizes(*this);
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    EdgeOffset edges = 0;
    for (std::int64_t w = begin; w < end; ++w) {
      check_indices(*this, w);
      edges += check_edges(*this, w);
    }
    return edges;
  };
  const EdgeOffset edges =
      parallel_reduce(num_windows(), 64, EdgeOffset{0}, count, std::plus<EdgeOffset>());
  require(edges == num_edges, "words", fmt::format("{} bits for {} edges", edges, num_edges));
}

bool operator==(const QuadTiles& a, const QuadTiles& b) {
  return a.num_rows == b.num_rows && a.num_cols == b.num_cols && a.num_edges == b.num_edges &&
         a.num_quads == b.num_quads && a.height == b.height && a.step_offsets == b.step_offsets &&
         a.tile_offsets == b.tile_offsets && a.columns == b.columns && a.words == b.words;
}

std::ostream& operator<<(std::ostream& out, const QuadTiles& tiles) {
  return out << fmt::format("{} x {} with {} edges in {} windows of {} rows: {} quads, {} steps",
                            tiles.num_rows, tiles.num_cols, tiles.num_edges, tiles.num_windows(),
                            tiles.height, tiles.num_quads, tiles.num_steps());
}

Graph to_graph(const QuadTiles& tiles) {
  Buffer<EdgeOffset> offsets(std::int64_t{tiles.num_rows} + 1);
  offsets[tiles.num_rows] = 0;
  parallel_for(tiles.num_rows, 64, [&](std::int64_t row) {
    offsets[row] = 0;
    for_edges_of(tiles, row, [&](VertexId) { ++offsets[row]; });
  });
  exclusive_scan(offsets.span());
  Buffer<VertexId> indices(tiles.num_edges);
  parallel_for(tiles.num_rows, 64, [&](std::int64_t row) {
    EdgeOffset at = offsets[row];
    for_edges_of(tiles, row, [&](VertexId column) { indices[at++] = column; });
    std::sort(indices.begin() + offsets[row], indices.begin() + at);
  });
  return Graph(tiles.num_rows, tiles.num_cols, std::move(offsets), std::move(indices));
}

}  // namespace tessera::tiles
