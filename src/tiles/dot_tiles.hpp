// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/shared_array.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// Edges of tall windows for dot products: an encoding of its own beside the bits.
///
/// The matrix unit computes all products of a tile, and a list says which of them to keep, and
/// where they belong. A strip is 16 rows of a window, the share of a warp. A strip's edges in a
/// tile stand row by row, in blocks of 64: word k of a block holds edge k in its low half and edge
/// k + 32 in its high half, each as row * 64 + column. docs/design/tile_format.md draws it.
namespace tessera::tiles {

/// Rows of the windows that have such lists.
inline constexpr int dot_tile_height = 64;
inline constexpr int strip_rows = 16;
inline constexpr int dot_tile_strips = dot_tile_height / strip_rows;
inline constexpr int code_block_edges = 64;
inline constexpr int code_block_words = 32;

/// One tile with all that a kernel reads of it but the codes.
struct alignas(16) DotTile {
  EdgeOffset first_edge = 0;  ///< of the window, in the order of the side's rows
  VertexId first_row = 0;
  std::int16_t num_columns = 0;
  std::int16_t first_of_window = 0;
  std::uint32_t first_blocks[dot_tile_strips] = {};  ///< of each strip's codes
  std::uint16_t counts[dot_tile_strips] = {};        ///< edges of each strip
  std::int32_t reserved[2] = {};
  /// Beyond the last there are zeros.
  VertexId columns[tile_columns] = {};
  /// What is added to the number of an edge in its strip's list: its place in the window's edges.
  std::int32_t shifts[dot_tile_height] = {};

  friend bool operator==(const DotTile&, const DotTile&) = default;
};
static_assert(sizeof(DotTile) == 560);

constexpr int code_blocks(int edges) { return (edges + code_block_edges - 1) / code_block_edges; }

/// Where the code of a strip's edge stands, counted in halves of words, the low one first, from the
/// strip's first block.
constexpr int code_place(int number) {
  const int within = number % code_block_edges;
  return number - within + within % code_block_words * 2 + within / code_block_words;
}

/// `column` counts within the tile, `row` within the strip.
constexpr std::uint16_t code_of(int row, int column) {
  return static_cast<std::uint16_t>(row * tile_columns + column);
}

/// The tiles of a graph, window after window, and the lists of their edges.
struct DotTiles {
  SharedArray<DotTile> tiles;
  SharedArray<std::uint32_t> codes;

  /// The same bytes.
  friend bool operator==(const DotTiles&, const DotTiles&) = default;
};

/// `tiled` is that side of the graph in windows of `dot_tile_height` rows. The same bytes for any
/// number of threads. Throws `unsupported` for more than 2^31 - 1 tiles or blocks of codes.
DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side);

/// The same bytes, made in a place and brought back.
DotTiles make_dot_tiles(const Graph& graph, const TiledGraph& tiled, Side side, const Place& place);

/// As many blocks as so many edges on tiles can have at most. Throws as above.
std::int64_t most_code_blocks(EdgeOffset num_edges, std::int64_t num_tiles);

/// Why a graph has no such lists, in words; empty if it has. Numbers in a window have 32 bits.
std::string why_no_dot_tiles(const Graph& graph);

}  // namespace tessera::tiles
