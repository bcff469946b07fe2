// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/window_columns.hpp"

/// What the encodings of windows have in common on the CPU.
namespace tessera::tiles {

/// Neighbouring windows that one thread translated: pieces of the arrays, to be joined when all
/// sizes are known.
struct WindowRange {
  std::vector<VertexId> columns;
  std::vector<std::uint32_t> words;
  std::vector<VertexId> rest;  ///< columns of the edges left out, row by row
  std::int64_t quads = 0;
};

/// All windows of a side in such ranges.
class WindowRanges {
 public:
  WindowRanges(const SideRows& rows, int height, int columns_per_step)
      : rows_(rows),
        height_(height),
        columns_per_step_(columns_per_step),
        num_windows_(rows.num_windows(height)),
        grain_(std::max<std::int64_t>(1, 4096 / height)),
        ranges_(static_cast<std::size_t>((num_windows_ + grain_ - 1) / grain_)),
        step_offsets_(num_windows_ + 1),
        tile_offsets_(num_windows_ + 1) {}

  /// Calls add(first row, last row, window, range) for every window, which returns how many columns
  /// stand side by side; `Window` is reused from window to window.
  template <class Window, class Add>
  void translate(Add&& add) {
    parallel_ranges(num_windows_, grain_, [&](std::int64_t begin, std::int64_t end) {
      Window window;
      WindowRange& range = ranges_[static_cast<std::size_t>(begin / grain_)];
      for (std::int64_t w = begin; w < end; ++w) {
        const auto [first, last] = rows_.window(w, height_);
        const EdgeOffset columns = add(first, last, window, range);
        step_offsets_[w] = (columns + columns_per_step_ - 1) / columns_per_step_;
        tile_offsets_[w] = (columns + tile_columns - 1) / tile_columns;
      }
    });
    step_offsets_[num_windows_] = tile_offsets_[num_windows_] = 0;
    exclusive_scan(step_offsets_.span());
    exclusive_scan(tile_offsets_.span());
  }

  /// Calls body(range, first window) for every range.
  template <class Body>
  void for_all(Body&& body) const {
    parallel_for(std::ssize(ranges_), 1,
                 [&](std::int64_t i) { body(ranges_[static_cast<std::size_t>(i)], i * grain_); });
  }

  const std::vector<WindowRange>& ranges() const { return ranges_; }

  /// All in one, but for the number of edges; what was translated moves there.
  template <class Tiles>
  Tiles joined() {
    Tiles tiles;
    tiles.num_rows = rows_.num_rows;
    tiles.num_cols = rows_.num_cols;
    tiles.height = height_;
    const std::int64_t words_per_tile = tiles.words_per_tile();
    Buffer<VertexId> columns(step_offsets_[num_windows_] * columns_per_step_);
    Buffer<std::uint32_t> words(tile_offsets_[num_windows_] * words_per_tile);
    for_all([&](const WindowRange& range, std::int64_t window) {
      std::copy(range.columns.begin(), range.columns.end(),
                columns.begin() + step_offsets_[window] * columns_per_step_);
      std::copy(range.words.begin(), range.words.end(),
                words.begin() + tile_offsets_[window] * words_per_tile);
    });
    tiles.step_offsets = std::move(step_offsets_);
    tiles.tile_offsets = std::move(tile_offsets_);
    tiles.columns = std::move(columns);
    tiles.words = std::move(words);
    return tiles;
  }

 private:
  SideRows rows_;
  int height_;
  int columns_per_step_;
  std::int64_t num_windows_;
  std::int64_t grain_;  ///< windows in a range
  std::vector<WindowRange> ranges_;
  Buffer<EdgeOffset> step_offsets_;
  Buffer<EdgeOffset> tile_offsets_;
};

/// Throws `bad_data` about an array unless something holds.
void require(bool holds, const char* array, const std::string& problem);

/// Throws `bad_data` unless every array has the size that the others ask for.
void check_sizes(const WindowTiles& tiles, int columns_per_step, int words_per_tile);

/// Throws `bad_data` unless windows have as many edges as they should: check(window) counts them.
template <class Check>
void check_edges(const WindowTiles& tiles, Check&& check) {
  const auto count = [&](std::int64_t begin, std::int64_t end) {
    EdgeOffset edges = 0;
    for (std::int64_t w = begin; w < end; ++w) edges += check(w);
    return edges;
  };
  const EdgeOffset edges =
      parallel_reduce(tiles.num_windows(), 64, EdgeOffset{0}, count, std::plus<EdgeOffset>());
  require(edges == tiles.num_edges, "words",
          fmt::format("{} bits for {} edges", edges, tiles.num_edges));
}

/// The graph for whose rows for_edges_of(row, body) calls body(column), in any order.
template <class ForEdges>
Graph graph_of(const WindowTiles& tiles, ForEdges&& for_edges_of) {
  Buffer<EdgeOffset> offsets(std::int64_t{tiles.num_rows} + 1);
  offsets[tiles.num_rows] = 0;
  parallel_for(tiles.num_rows, 64, [&](std::int64_t row) {
    offsets[row] = 0;
    for_edges_of(row, [&](VertexId) { ++offsets[row]; });
  });
  exclusive_scan(offsets.span());
  Buffer<VertexId> indices(tiles.num_edges);
  parallel_for(tiles.num_rows, 64, [&](std::int64_t row) {
    EdgeOffset at = offsets[row];
    for_edges_of(row, [&](VertexId column) { indices[at++] = column; });
    std::sort(indices.begin() + offsets[row], indices.begin() + at);
  });
  return Graph(tiles.num_rows, tiles.num_cols, std::move(offsets), std::move(indices));
}

}  // namespace tessera::tiles
