// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>

#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// The graph as tiles for sparse tensor cores, without reordering the graph.
///
/// Inside a window of rows the order of the columns is free. Here it is chosen so that they stand
/// in groups of four, quads, of which every row uses at most two: 2:4. Eight quads are a step (the
/// k of one sparse matrix instruction), two steps a tile. docs/design/tile_format.md draws it.
namespace tessera::tiles {

inline constexpr std::array<int, 5> quad_heights = {16, 32, 64, 128, 256};

inline constexpr int quad_columns = 4;
inline constexpr int quad_step_columns = 32;
inline constexpr int quads_per_step = quad_step_columns / quad_columns;
/// Of 16 rows and a tile: 32 words of indices, one for each lane, and 16 of bits.
inline constexpr int quad_strip_words = 48;

/// 32 columns for each step: a place without one repeats another of its quad, or of the last quad.
/// 48 words for each 16 rows of each tile.
struct QuadTiles : WindowTiles {
  std::int64_t num_quads = 0;  ///< with columns; others fill the last step of a window

  int words_per_tile() const noexcept { return height / 16 * quad_strip_words; }
  /// Which of the four columns of a quad a row uses, as bits; quads count within the tile.
  unsigned used_columns(std::int64_t tile, int row, int quad) const noexcept;

  /// Throws `bad_data` unless every array has the size described above, the indices of a quad rise,
  /// no edge stands outside the graph or twice, and there are as many as the graph has.
  void validate() const;

  /// The same bytes.
  friend bool operator==(const QuadTiles&, const QuadTiles&) = default;
};

/// One line: shape, windows, quads.
std::ostream& operator<<(std::ostream& out, const QuadTiles& tiles);

/// Values and scales stay with the graph. The same bytes for any number of threads.
QuadTiles translate_quads(const Graph& graph, int height, Side side = Side::forward);

/// On a GPU, with the same bytes; the arrays come to this process.
QuadTiles translate_quads(const Graph& graph, int height, Side side, const Place& place);

/// The pattern that was translated (A^T for the transposed side).
Graph to_graph(const QuadTiles& tiles);

}  // namespace tessera::tiles
