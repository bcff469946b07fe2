// SPDX-License-Identifier: Apache-2.0
#include "tiles/dot_tiles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tiles/fragment.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {
namespace {

constexpr std::int64_t max_number = std::numeric_limits<std::int32_t>::max();
constexpr int words_per_strip = 32;

/// First every tile without what depends on others, then where codes begin, then the codes.
class DotTileWriter {
 public:
  DotTileWriter(const SideRows& rows, const TiledGraph& tiled)
      : rows_(rows),
        tiled_(tiled),
        tiles_(tiled.num_tiles()),
        first_blocks_(tiled.num_tiles() * dot_tile_strips + 1) {}

  DotTiles write() {
    for_windows([&](std::int64_t window) { begin_tiles(window); });
    first_blocks_[first_blocks_.size() - 1] = 0;
    exclusive_scan(first_blocks_.span());
    codes_ = Buffer<std::uint32_t>(first_blocks_[first_blocks_.size() - 1] * code_block_words, 0u);
    for_windows([&](std::int64_t window) { list_edges(window); });
    DotTiles made;
    made.tiles = std::move(tiles_);
    made.codes = std::move(codes_);
    return made;
  }

 private:
  template <class Body>
  void for_windows(Body&& body) const {
    parallel_for(tiled_.num_windows(), 16, body);
  }

  const std::uint32_t* words(EdgeOffset tile) const {
    return tiled_.words.data() + tile * tiled_.words_per_tile();
  }
  EdgeOffset row_begin(std::int64_t row) const {
    return rows_.offsets[static_cast<std::size_t>(row)];
  }

  void begin_tiles(std::int64_t window) {
    const EdgeOffset first_tile = tiled_.tile_offsets[window];
    const VertexId distinct = tiled_.distinct_columns(window);
    const VertexId* const columns =
        tiled_.columns.data() + tiled_.step_offsets[window] * step_columns;
    for (EdgeOffset tile = first_tile; tile < tiled_.tile_offsets[window + 1]; ++tile) {
      const EdgeOffset first = (tile - first_tile) * tile_columns;
      const EdgeOffset count = std::min<EdgeOffset>(tile_columns, distinct - first);
      DotTile& to = tiles_[tile] = DotTile{};
      to.first_row = static_cast<VertexId>(window * dot_tile_height);
      to.first_edge = row_begin(to.first_row);
      to.num_columns = static_cast<std::int16_t>(count);
      to.first_of_window = tile == first_tile ? 1 : 0;
      std::copy_n(columns + first, count, to.columns);
      for (int strip = 0; strip < dot_tile_strips; ++strip) {
        int edges = 0;
        for (int k = 0; k < words_per_strip; ++k) {
          edges += std::popcount(words(tile)[strip * words_per_strip + k]);
        }
        to.counts[strip] = static_cast<std::uint16_t>(edges);
        first_blocks_[tile * dot_tile_strips + strip] = code_blocks(edges);
      }
    }
  }

  void list_edges(std::int64_t window) {
    std::array<EdgeOffset, dot_tile_height> seen{};  // edges of each row in earlier tiles
    for (EdgeOffset tile = tiled_.tile_offsets[window]; tile < tiled_.tile_offsets[window + 1];
         ++tile) {
      for (int strip = 0; strip < dot_tile_strips; ++strip) list_strip(tile, strip, seen);
    }
  }

  void list_strip(EdgeOffset tile, int strip, std::array<EdgeOffset, dot_tile_height>& seen) {
    DotTile& to = tiles_[tile];
    const std::int64_t first_block = first_blocks_[tile * dot_tile_strips + strip];
    to.first_blocks[strip] = static_cast<std::uint32_t>(first_block);
    std::uint32_t* const codes = codes_.data() + first_block * code_block_words;
    int number = 0;
    for (int row = strip * strip_rows; row < (strip + 1) * strip_rows; ++row) {
      if (to.first_row + row >= rows_.num_rows) return;
      EdgeOffset& before = seen[static_cast<std::size_t>(row)];
      to.shifts[row] = static_cast<std::int32_t>(row_begin(to.first_row + row) - to.first_edge +
                                                 before - number);
      for (int first = 0; first < tile_columns; first += 32) {
        std::uint32_t bits = row_bits(words(tile), dot_tile_height, row, first, 32);
        for (; bits != 0; bits &= bits - 1) {
          const std::uint32_t code = code_of(row % strip_rows, first + std::countr_zero(bits));
          const int place = code_place(number++);
          codes[place / 2] |= code << (16 * (place % 2));
          ++before;
        }
      }
    }
  }

  SideRows rows_;
  const TiledGraph& tiled_;
  Buffer<DotTile> tiles_;
  Buffer<EdgeOffset> first_blocks_;  ///< of each strip; before they are added up, how many
  Buffer<std::uint32_t> codes_;
};

}  // namespace

DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side) {
  most_code_blocks(tiled.num_edges, tiled.num_tiles());
  return DotTileWriter(rows_of(graph, side), tiled).write();
}

std::int64_t most_code_blocks(EdgeOffset num_edges, std::int64_t num_tiles) {
  // Every strip begins a block of its own, if it has edges.
  constexpr std::int64_t most_unused = code_block_edges - 1;
  const std::int64_t blocks = std::min(
      num_edges, (num_edges + most_unused * dot_tile_strips * num_tiles) / code_block_edges);
  if (num_tiles <= max_number && blocks <= max_number) return blocks;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} tiles with {} edges in one graph", num_tiles, num_edges), "tiles",
              "partition the graph");
}

std::string why_no_dot_tiles(const Graph& graph) {
  // Only a graph this large can have such a window.
  if (graph.num_edges() <= max_number) return {};
  for (std::int64_t row = 0; row < graph.num_rows(); row += dot_tile_height) {
    const std::int64_t end = std::min<std::int64_t>(graph.num_rows(), row + dot_tile_height);
    if (graph.row_offsets()[end] - graph.row_offsets()[row] > max_number) {
      return fmt::format("more than 2^31 edges in {} rows", dot_tile_height);
    }
  }
  return {};
}

}  // namespace tessera::tiles
