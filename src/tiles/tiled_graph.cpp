// SPDX-License-Identifier: Apache-2.0
#include "tessera/tiles/tiled_graph.hpp"

#include <algorithm>
#include <bit>
#include <ostream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "tiles/fragment.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

void require(bool holds, const char* array, const std::string& problem) {
  if (holds) return;
  throw Error(ErrorCode::bad_data, "tiles contradict themselves: " + problem, array,
              "translate the graph again");
}

void check_sizes(const TiledGraph& tiled) {
  const auto windows = (std::int64_t{tiled.num_rows} + tiled.height - 1) / tiled.height;
  require(tiled.num_rows >= 0 && tiled.num_cols >= 0, "shape", "a negative number of vertices");
  require(tiled.step_offsets.size() == windows + 1, "step_offsets", "not one for each window");
  require(tiled.tile_offsets.size() == windows + 1, "tile_offsets", "not one for each window");
  require(tiled.step_offsets[0] == 0 && tiled.tile_offsets[0] == 0, "offsets",
          "the first is not 0");
  for (std::int64_t w = 0; w < windows; ++w) {
    const EdgeOffset steps = tiled.step_offsets[w + 1] - tiled.step_offsets[w];
    const EdgeOffset tiles = tiled.tile_offsets[w + 1] - tiled.tile_offsets[w];
    require(steps >= 0, "step_offsets", fmt::format("they fall at window {}", w));
    require(tiles == (steps * step_columns + tile_columns - 1) / tile_columns, "tile_offsets",
            fmt::format("{} tiles for {} steps in window {}", tiles, steps, w));
  }
  require(tiled.columns.size() == tiled.num_steps() * step_columns, "columns", "not 16 a step");
  require(tiled.words.size() == tiled.num_tiles() * tiled.words_per_tile(), "words",
          fmt::format("not {} a tile", tiled.words_per_tile()));
}

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

std::int64_t TiledGraph::num_bytes() const noexcept {
  return (step_offsets.size() + tile_offsets.size()) *
             static_cast<std::int64_t>(sizeof(EdgeOffset)) +
         columns.size() * static_cast<std::int64_t>(sizeof(VertexId)) +
         words.size() * static_cast<std::int64_t>(sizeof(std::uint32_t));
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
  check_sizes(*this);
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    EdgeOffset edges = 0;
    for (std::int64_t w = begin; w < end; ++w) {
      check_columns(*this, w);
      edges += check_bits(*this, w);
    }
    return edges;
  };
  const EdgeOffset bits =
      parallel_reduce(num_windows(), 64, EdgeOffset{0}, count, std::plus<EdgeOffset>());
  require(bits == num_edges, "words", fmt::format("{} bits for {} edges", bits, num_edges));
}

bool operator==(const TiledGraph& a, const TiledGraph& b) {
  return a.num_rows == b.num_rows && a.num_cols == b.num_cols && a.num_edges == b.num_edges &&
         a.height == b.height && a.step_offsets == b.step_offsets &&
         a.tile_offsets == b.tile_offsets && a.columns == b.columns && a.words == b.words;
}

std::ostream& operator<<(std::ostream& out, const TiledGraph& tiled) {
  return out << fmt::format("{} x {} with {} edges in {} windows of {} rows: {} tiles, {} steps",
                            tiled.num_rows, tiled.num_cols, tiled.num_edges, tiled.num_windows(),
                            tiled.height, tiled.num_tiles(), tiled.num_steps());
}

Graph to_graph(const TiledGraph& tiled) {
  const auto for_edges_of = [&](std::int64_t row, auto&& body) {
    const std::int64_t w = row / tiled.height;
    const VertexId* const columns = tiled.columns.data() + tiled.step_offsets[w] * step_columns;
    for (EdgeOffset tile = tiled.tile_offsets[w]; tile < tiled.tile_offsets[w + 1]; ++tile) {
      for (int column = 0; column < tile_columns; ++column) {
        if (!tiled.has_edge(tile, static_cast<int>(row % tiled.height), column)) continue;
        body(columns[(tile - tiled.tile_offsets[w]) * tile_columns + column]);
      }
    }
  };
  Buffer<EdgeOffset> offsets(std::int64_t{tiled.num_rows} + 1);
  offsets[tiled.num_rows] = 0;
  parallel_for(tiled.num_rows, 64, [&](std::int64_t row) {
    offsets[row] = 0;
    for_edges_of(row, [&](VertexId) { ++offsets[row]; });
  });
  exclusive_scan(offsets.span());
  Buffer<VertexId> indices(tiled.num_edges);
  parallel_for(tiled.num_rows, 64, [&](std::int64_t row) {
    EdgeOffset at = offsets[row];
    for_edges_of(row, [&](VertexId column) { indices[at++] = column; });
  });
  return Graph(tiled.num_rows, tiled.num_cols, std::move(offsets), std::move(indices));
}

}  // namespace tessera::tiles
