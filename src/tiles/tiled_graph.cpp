// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/tiled_graph.hpp"

#include <ostream>
#include <string>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "tiles/fragment.hpp"
#include "tiles/window_tiles.hpp"

namespace tessera::tiles {
namespace {

void check_columns(const TiledGraph& tiled, std::int64_t w) {
  const VertexId distinct = tiled.distinct_columns(w);
  const VertexId* const columns = tiled.columns.data() + tiled.step_offsets[w] * step_columns;
  const auto stored = (tiled.step_offsets[w + 1] - tiled.step_offsets[w]) * step_columns;
  require(stored - distinct < step_columns, "columns",
          fmt::format("a whole step of window {} repeats", w));
  for (std::int64_t k = 0; k < stored; ++k) {
    require(
        columns[k] >= 0 && columns[k] < tiled.num_cols, "columns",
        fmt::format("column {} in window {} of a graph with {}", columns[k], w, tiled.num_cols));
    const bool in_order = k == 0 || k >= distinct || columns[k - 1] < columns[k];
    require(in_order, "columns", fmt::format("they do not rise in window {}", w));
  }
}

/// Returns the number of edges of a window.
EdgeOffset check_bits(const TiledGraph& tiled, std::int64_t w) {
  const VertexId distinct = tiled.distinct_columns(w);
  const auto rows_left = std::int64_t{tiled.num_rows} - w * tiled.height;
  EdgeOffset edges = 0;
  for (EdgeOffset tile = tiled.tile_offsets[w]; tile < tiled.tile_offsets[w + 1]; ++tile) {
    for (int column = 0; column < tile_columns; ++column) {
      const bool exists = (tile - tiled.tile_offsets[w]) * tile_columns + column < distinct;
      EdgeOffset uses = 0;
      for (int row = 0; row < tiled.height; ++row) {
        if (!tiled.has_edge(tile, row, column)) continue;
        require(exists && row < rows_left, "words",
                fmt::format("a bit outside the graph in tile {}", tile));
        ++uses;
      }
      require(uses > 0 || !exists, "words", fmt::format("an unused column in tile {}", tile));
      edges += uses;
    }
  }
  return edges;
}

}  // namespace

const char* to_string(Side side) noexcept {
  return side == Side::forward ? "forward" : "transposed";
}

std::int64_t WindowTiles::num_bytes() const noexcept {
  return (step_offsets.size() + tile_offsets.size()) *
             static_cast<std::int64_t>(sizeof(EdgeOffset)) +
         columns.size() * static_cast<std::int64_t>(sizeof(VertexId)) +
         words.size() * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void require(bool holds, const char* array, const std::string& problem) {
  if (holds) return;
  throw Error(ErrorCode::bad_data, "tiles contradict themselves: " + problem, array,
              "translate the graph again");
}

void check_sizes(const WindowTiles& tiles, int columns_per_step, int words_per_tile) {
  const auto windows = (std::int64_t{tiles.num_rows} + tiles.height - 1) / tiles.height;
  require(tiles.num_rows >= 0 && tiles.num_cols >= 0, "shape", "a negative number of vertices");
  require(tiles.step_offsets.size() == windows + 1, "step_offsets", "not one for each window");
  require(tiles.tile_offsets.size() == windows + 1, "tile_offsets", "not one for each window");
  require(tiles.step_offsets[0] == 0 && tiles.tile_offsets[0] == 0, "offsets",
          "the first is not 0");
  for (std::int64_t w = 0; w < windows; ++w) {
    const EdgeOffset steps = tiles.step_offsets[w + 1] - tiles.step_offsets[w];
    const EdgeOffset count = tiles.tile_offsets[w + 1] - tiles.tile_offsets[w];
    require(steps >= 0, "step_offsets", fmt::format("they fall at window {}", w));
    require(count == (steps * columns_per_step + tile_columns - 1) / tile_columns, "tile_offsets",
            fmt::format("{} tiles for {} steps in window {}", count, steps, w));
  }
  require(tiles.columns.size() == tiles.num_steps() * columns_per_step, "columns",
          fmt::format("not {} a step", columns_per_step));
  require(tiles.words.size() == tiles.num_tiles() * words_per_tile, "words",
          fmt::format("not {} a tile", words_per_tile));
}

VertexId TiledGraph::distinct_columns(std::int64_t window) const noexcept {
  const EdgeOffset begin = step_offsets[window] * step_columns;
  EdgeOffset end = step_offsets[window + 1] * step_columns;
  if (begin == end) return 0;
  while (end - 1 > begin && columns[end - 2] == columns[end - 1]) --end;
  return static_cast<VertexId>(end - begin);
}

bool TiledGraph::has_edge(std::int64_t tile, int row, int column) const noexcept {
  const BitPlace at = bit_place(height, row, column);
  return (words[tile * words_per_tile() + at.word] >> at.bit & 1u) != 0;
}

void TiledGraph::validate() const {
  check_height(height);
  check_sizes(*this, step_columns, words_per_tile());
  check_edges(*this, [&](std::int64_t w) {
    check_columns(*this, w);
    return check_bits(*this, w);
  });
}

std::ostream& operator<<(std::ostream& out, const TiledGraph& tiled) {
  return out << fmt::format("{} x {} with {} edges in {} windows of {} rows: {} tiles, {} steps",
                            tiled.num_rows, tiled.num_cols, tiled.num_edges, tiled.num_windows(),
                            tiled.height, tiled.num_tiles(), tiled.num_steps());
}

Graph to_graph(const TiledGraph& tiled) {
  return graph_of(tiled, [&](std::int64_t row, auto&& body) {
    const std::int64_t w = row / tiled.height;
    const VertexId* const columns = tiled.columns.data() + tiled.step_offsets[w] * step_columns;
    for (EdgeOffset tile = tiled.tile_offsets[w]; tile < tiled.tile_offsets[w + 1]; ++tile) {
      for (int column = 0; column < tile_columns; ++column) {
        if (!tiled.has_edge(tile, static_cast<int>(row % tiled.height), column)) continue;
        body(columns[(tile - tiled.tile_offsets[w]) * tile_columns + column]);
      }
    }
  });
}

}  // namespace tessera::tiles
