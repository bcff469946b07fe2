// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/tile_lists.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::ops {
namespace {

constexpr std::int64_t windows_per_task = 64;

/// What some consecutive windows become.
template <int height>
struct ListsPart {
  std::vector<DotTile<height>> tiles;  ///< blocks count from the first of `codes`
  std::vector<std::uint32_t> codes;
};

/// Writes the tiles of one window after the other. Its memory grows to the largest and stays.
template <int height>
class ListWriter {
 public:
  ListWriter(const tiles::SideRows& rows, ListsPart<height>& lists) : rows_(rows), lists_(lists) {}

  void add_window(VertexId first_row) {
    const auto last_row = static_cast<VertexId>(
        std::min<std::int64_t>(rows_.num_rows, std::int64_t{first_row} + height));
    window_.collect(rows_, first_row, last_row);
    first_row_ = first_row;
    num_rows_ = last_row - first_row;
    first_tile_ = lists_.tiles.size();
    make_tiles();
    count_edges();
    place_edges();
  }

 private:
  EdgeOffset row_begin(int row) const {
    return rows_.offsets[static_cast<std::size_t>(first_row_ + row)] - window_begin();
  }
  EdgeOffset window_begin() const { return rows_.offsets[static_cast<std::size_t>(first_row_)]; }

  void make_tiles() {
    const std::span<const VertexId> columns = window_.columns();
    for (std::size_t begin = 0; begin < columns.size(); begin += dot_tile_columns) {
      DotTile<height>& tile = lists_.tiles.emplace_back();
      const std::size_t count = std::min<std::size_t>(dot_tile_columns, columns.size() - begin);
      tile.first_edge = window_begin();
      tile.first_row = first_row_;
      tile.num_columns = static_cast<std::int16_t>(count);
      tile.first_of_window = begin == 0 ? 1 : 0;
      std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(begin), count, tile.columns);
    }
  }

  /// Counted for each row in each tile; `starts_` then says where a row's edges stand in its
  /// strip's list.
  void count_edges() {
    const std::size_t num_tiles = lists_.tiles.size() - first_tile_;
    counts_.assign(num_tiles * height, 0);
    starts_.assign(num_tiles * height, 0);
    for (int row = 0; row < num_rows_; ++row) {
      for (EdgeOffset k = row_begin(row); k < row_begin(row + 1); ++k) {
        ++counts_[tile_of(k) * height + static_cast<std::size_t>(row)];
      }
    }
    seen_.assign(height, 0);
    for (std::size_t t = 0; t < num_tiles; ++t) {
      DotTile<height>& tile = lists_.tiles[first_tile_ + t];
      for (int row = 0; row < height; ++row) add_row(tile, t * height, row);
    }
  }

  void add_row(DotTile<height>& tile, std::size_t first, int row) {
    const std::size_t at = first + static_cast<std::size_t>(row);
    std::uint16_t& in_strip = tile.counts[row / strip_rows];
    if (row % strip_rows == 0) {
      tile.first_blocks[row / strip_rows] =
          static_cast<std::uint32_t>(lists_.codes.size() / code_block_words);
    }
    starts_[at] = in_strip;
    in_strip = static_cast<std::uint16_t>(in_strip + counts_[at]);
    if (row < num_rows_) {
      const EdgeOffset& seen = seen_[static_cast<std::size_t>(row)];
      tile.shifts[row] = static_cast<std::int32_t>(row_begin(row) + seen - starts_[at]);
    }
    seen_[static_cast<std::size_t>(row)] += counts_[at];
    if (row % strip_rows != strip_rows - 1) return;
    const std::size_t blocks = (in_strip + code_block_edges - 1u) / code_block_edges;
    lists_.codes.resize(lists_.codes.size() + blocks * code_block_words);
  }

  void place_edges() {
    for (int row = 0; row < num_rows_; ++row) {
      for (EdgeOffset k = row_begin(row); k < row_begin(row + 1); ++k) {
        const std::size_t t = tile_of(k);
        const DotTile<height>& tile = lists_.tiles[first_tile_ + t];
        const auto number =
            static_cast<std::size_t>(starts_[t * height + static_cast<std::size_t>(row)]++);
        const std::size_t block = tile.first_blocks[row / strip_rows] + number / code_block_edges;
        const std::size_t within = number % code_block_edges;
        const auto code = static_cast<std::uint32_t>(row % strip_rows * dot_tile_columns +
                                                     place_of(k) % dot_tile_columns);
        lists_.codes[block * code_block_words + within % code_block_words] |=
            within < code_block_words ? code : code << 16;
      }
    }
  }

  std::int32_t place_of(EdgeOffset edge) const {
    return window_.place_of_edge(static_cast<std::size_t>(edge));
  }
  std::size_t tile_of(EdgeOffset edge) const {
    return static_cast<std::size_t>(place_of(edge) / dot_tile_columns);
  }

  const tiles::SideRows& rows_;
  ListsPart<height>& lists_;
  tiles::WindowColumns window_;
  VertexId first_row_ = 0;
  int num_rows_ = 0;
  std::size_t first_tile_ = 0;
  std::vector<std::int32_t> counts_;  ///< by tile and row, as `starts_`
  std::vector<std::int32_t> starts_;
  std::vector<EdgeOffset> seen_;  ///< edges of each row in earlier tiles
};

/// Puts what the tasks made side by side.
template <int height>
TileLists<height> joined(std::span<const ListsPart<height>> parts) {
  std::vector<std::int64_t> first_tile(parts.size() + 1);
  std::vector<std::int64_t> first_word(parts.size() + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    first_tile[i + 1] = first_tile[i] + std::ssize(parts[i].tiles);
    first_word[i + 1] = first_word[i] + std::ssize(parts[i].codes);
  }
  if (first_tile.back() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::unsupported, fmt::format("{} tiles in one graph", first_tile.back()),
                "tiles", "partition the graph");
  }
  TileLists<height> all{Buffer<DotTile<height>>(first_tile.back()),
                        Buffer<std::uint32_t>(first_word.back())};
  parallel_tasks(std::ssize(parts), [&](std::int64_t i) {
    const auto part = static_cast<std::size_t>(i);
    const auto blocks = static_cast<std::uint32_t>(first_word[part] / code_block_words);
    std::copy(parts[part].codes.begin(), parts[part].codes.end(),
              all.codes.begin() + first_word[part]);
    std::int64_t at = first_tile[part];
    for (const DotTile<height>& tile : parts[part].tiles) {
      all.tiles[at] = tile;
      for (std::uint32_t& first : all.tiles[at].first_blocks) first += blocks;
      ++at;
    }
  });
  return all;
}

}  // namespace

template <int height>
TileLists<height> make_tile_lists(const Graph& graph) {
  const tiles::SideRows rows = tiles::rows_of(graph, tiles::Side::forward);
  const std::int64_t windows = rows.num_windows(height);
  const std::int64_t tasks = (windows + windows_per_task - 1) / windows_per_task;
  std::vector<ListsPart<height>> parts(static_cast<std::size_t>(tasks));
  parallel_tasks(tasks, [&](std::int64_t task) {
    ListWriter<height> writer(rows, parts[static_cast<std::size_t>(task)]);
    const std::int64_t last = std::min(windows, (task + 1) * windows_per_task);
    for (std::int64_t w = task * windows_per_task; w < last; ++w) {
      writer.add_window(static_cast<VertexId>(w * height));
    }
  });
  return joined(std::span<const ListsPart<height>>(parts));
}

template TileLists<64> make_tile_lists<64>(const Graph&);
template TileLists<128> make_tile_lists<128>(const Graph&);

std::string why_no_tile_lists(const Graph& graph, int height) {
  // Only a graph this large can have such a window.
  if (graph.num_edges() <= std::numeric_limits<std::int32_t>::max()) return {};
  for (std::int64_t row = 0; row < graph.num_rows(); row += height) {
    const std::int64_t end = std::min<std::int64_t>(graph.num_rows(), row + height);
    if (graph.row_offsets()[end] - graph.row_offsets()[row] >
        std::numeric_limits<std::int32_t>::max()) {
      return fmt::format("more than 2^31 edges in {} rows", height);
    }
  }
  return {};
}

}  // namespace tessera::ops
