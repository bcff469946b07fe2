// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/tiles/tiled_graph.hpp"

#include "tiles/fragment.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

/// What neighbouring windows become: pieces of the arrays, to be joined when their sizes are known.
struct WindowRange {
  std::vector<VertexId> columns;
  std::vector<std::uint32_t> words;
  std::vector<VertexId> rest;  ///< columns of the edges left out, row by row
};

class Translation {
 public:
  Translation(const SideRows& rows, int height, int min_uses, bool wants_rest)
      : rows_(rows),
        height_(height),
        min_uses_(min_uses),
        num_windows_(rows.num_windows(height)),
        grain_(std::max<std::int64_t>(1, 4096 / height)),
        ranges_(static_cast<std::size_t>((num_windows_ + grain_ - 1) / grain_)),
        step_offsets_(num_windows_ + 1),
        tile_offsets_(num_windows_ + 1),
        rest_offsets_(wants_rest ? std::int64_t{rows.num_rows} + 1 : 0) {
    parallel_ranges(num_windows_, grain_, [&](std::int64_t begin, std::int64_t end) {
      WindowColumns window;
      WindowRange& range = ranges_[static_cast<std::size_t>(begin / grain_)];
      for (std::int64_t w = begin; w < end; ++w) add_window(w, window, range);
    });
    step_offsets_[num_windows_] = tile_offsets_[num_windows_] = 0;
    exclusive_scan(step_offsets_.span());
    exclusive_scan(tile_offsets_.span());
    if (rest_offsets_.empty()) return;
    rest_offsets_[rows.num_rows] = 0;
    exclusive_scan(rest_offsets_.span());
  }

  TiledGraph dense() {
    Buffer<VertexId> columns(step_offsets_[num_windows_] * step_columns);
    Buffer<std::uint32_t> words(tile_offsets_[num_windows_] * 2 * height_);
    for_all_ranges([&](const WindowRange& range, std::int64_t window) {
      std::copy(range.columns.begin(), range.columns.end(),
                columns.begin() + step_offsets_[window] * step_columns);
      std::copy(range.words.begin(), range.words.end(),
                words.begin() + tile_offsets_[window] * 2 * height_);
    });
    TiledGraph tiled;
    tiled.num_rows = rows_.num_rows;
    tiled.num_cols = rows_.num_cols;
    tiled.num_edges = static_cast<EdgeOffset>(rows_.indices.size()) - num_rest();
    tiled.height = height_;
    tiled.step_offsets = std::move(step_offsets_);
    tiled.tile_offsets = std::move(tile_offsets_);
    tiled.columns = std::move(columns);
    tiled.words = std::move(words);
    return tiled;
  }

  Graph rest() {
    Buffer<VertexId> columns(num_rest());
    for_all_ranges([&](const WindowRange& range, std::int64_t window) {
      std::copy(range.rest.begin(), range.rest.end(),
                columns.begin() + rest_offsets_[window * height_]);
    });
    return Graph(rows_.num_rows, rows_.num_cols, std::move(rest_offsets_), std::move(columns));
  }

 private:
  void add_window(std::int64_t w, WindowColumns& window, WindowRange& range) {
    const auto first = static_cast<VertexId>(w * height_);
    const auto last = static_cast<VertexId>(
        std::min<std::int64_t>(rows_.num_rows, std::int64_t{first} + height_));
    window.collect(rows_, first, last);
    if (min_uses_ > 1) window.keep_used(min_uses_);
    const auto columns = window.columns();
    const std::size_t steps = (columns.size() + step_columns - 1) / step_columns;
    const std::size_t tiles = (columns.size() + tile_columns - 1) / tile_columns;
    step_offsets_[w] = static_cast<EdgeOffset>(steps);
    tile_offsets_[w] = static_cast<EdgeOffset>(tiles);
    range.columns.insert(range.columns.end(), columns.begin(), columns.end());
    range.columns.resize(range.columns.size() + steps * step_columns - columns.size(),
                         columns.empty() ? 0 : columns.back());
    const std::size_t first_word = range.words.size();
    range.words.resize(first_word + tiles * static_cast<std::size_t>(2 * height_));
    set_bits(first, last, window, range, first_word);
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

  /// Calls body(range, first window) for every range.
  template <class Body>
  void for_all_ranges(Body&& body) {
    parallel_for(static_cast<std::int64_t>(ranges_.size()), 1,
                 [&](std::int64_t i) { body(ranges_[static_cast<std::size_t>(i)], i * grain_); });
  }

  EdgeOffset num_rest() const {
    EdgeOffset edges = 0;
    for (const WindowRange& range : ranges_) edges += static_cast<EdgeOffset>(range.rest.size());
    return edges;
  }

  SideRows rows_;
  int height_;
  int min_uses_;
  std::int64_t num_windows_;
  std::int64_t grain_;  ///< windows in a range
  std::vector<WindowRange> ranges_;
  Buffer<EdgeOffset> step_offsets_;
  Buffer<EdgeOffset> tile_offsets_;
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
