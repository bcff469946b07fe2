// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tessera/core/parallel.hpp"
#include "tessera/tiles/tiled_graph.hpp"
#include "tiles/fragment.hpp"
#include "tiles/window_tiles.hpp"

namespace tessera::tiles {
namespace {

class Translation {
 public:
  Translation(const SideRows& rows, int height, int min_uses, bool wants_rest)
      : rows_(rows),
        height_(height),
        min_uses_(min_uses),
        windows_(rows, height, step_columns),
        rest_offsets_(wants_rest ? std::int64_t{rows.num_rows} + 1 : 0) {
    windows_.translate<WindowColumns>(
        [&](VertexId first, VertexId last, WindowColumns& window, WindowRange& range) {
          return add_window(first, last, window, range);
        });
    if (rest_offsets_.empty()) return;
    rest_offsets_[rows.num_rows] = 0;
    exclusive_scan(rest_offsets_.span());
  }

  TiledGraph dense() {
    auto tiled = windows_.joined<TiledGraph>();
    tiled.num_edges = std::ssize(rows_.indices) - num_rest();
    return tiled;
  }

  Graph rest() {
    Buffer<VertexId> columns(num_rest());
    windows_.for_all([&](const WindowRange& range, std::int64_t window) {
      std::copy(range.rest.begin(), range.rest.end(),
                columns.begin() + rest_offsets_[window * height_]);
    });
    return Graph(rows_.num_rows, rows_.num_cols, std::move(rest_offsets_), std::move(columns));
  }

 private:
  EdgeOffset add_window(VertexId first, VertexId last, WindowColumns& window, WindowRange& range) {
    window.collect(rows_, first, last);
    if (min_uses_ > 1) window.keep_used(min_uses_);
    const auto columns = window.columns();
    const std::size_t steps = (columns.size() + step_columns - 1) / step_columns;
    const std::size_t tiles = (columns.size() + tile_columns - 1) / tile_columns;
    range.columns.insert(range.columns.end(), columns.begin(), columns.end());
    range.columns.resize(range.columns.size() + steps * step_columns - columns.size(),
                         columns.empty() ? 0 : columns.back());
    const std::size_t first_word = range.words.size();
    range.words.resize(first_word + tiles * static_cast<std::size_t>(2 * height_));
    set_bits(first, last, window, range, first_word);
    return std::ssize(columns);
  }

  void set_bits(VertexId first, VertexId last, const WindowColumns& window, WindowRange& range,
                std::size_t first_word) {
    const EdgeOffset window_begin = rows_.offsets[static_cast<std::size_t>(first)];
    for (VertexId row = first; row < last; ++row) {
      const std::size_t rest_before = range.rest.size();
      const EdgeOffset end = rows_.offsets[static_cast<std::size_t>(row) + 1];
      for (EdgeOffset edge = rows_.offsets[static_cast<std::size_t>(row)]; edge < end; ++edge) {
        const std::int32_t place =
            window.place_of_edge(static_cast<std::size_t>(edge - window_begin));
        if (place < 0) {
          range.rest.push_back(rows_.indices[static_cast<std::size_t>(edge)]);
          continue;
        }
        const BitPlace at = bit_place(height_, row - first, place % tile_columns);
        const auto tile = static_cast<std::size_t>(place / tile_columns);
        range.words[first_word + tile * static_cast<std::size_t>(2 * height_) +
                    static_cast<std::size_t>(at.word)] |= 1u << at.bit;
      }
      if (rest_offsets_.empty()) continue;
      rest_offsets_[row] = static_cast<EdgeOffset>(range.rest.size() - rest_before);
    }
  }

  EdgeOffset num_rest() const {
    EdgeOffset edges = 0;
    for (const WindowRange& range : windows_.ranges()) edges += std::ssize(range.rest);
    return edges;
  }

  SideRows rows_;
  int height_;
  int min_uses_;
  WindowRanges windows_;
  Buffer<EdgeOffset> rest_offsets_;  ///< empty where nothing is left out
};

}  // namespace

TiledGraph translate(const Graph& graph, int height, Side side) {
  check_height(height);
  return Translation(rows_of(graph, side), height, 1, false).dense();
}

SplitGraph translate_dense(const Graph& graph, int height, int min_uses, Side side) {
  check_height(height);
  check_min_uses(min_uses);
  Translation translation(rows_of(graph, side), height, min_uses, true);
  SplitGraph split;
  split.dense = translation.dense();
  split.rest = translation.rest();
  return split;
}

}  // namespace tessera::tiles
