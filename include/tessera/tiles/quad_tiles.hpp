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

struct QuadTiles {
  VertexId num_rows = 0;  ///< of the side that was translated
  VertexId num_cols = 0;
  EdgeOffset num_edges = 0;
  std::int64_t num_quads = 0;  ///< with columns; others fill the last step of a window
  int height = 16;
  /// Window w has the steps [step_offsets[w], step_offsets[w + 1]), and likewise tiles; the last
  /// tile of a window may have one step.
  SharedArray<EdgeOffset> step_offsets;
  SharedArray<EdgeOffset> tile_offsets;
  /// 32 for each step. A place without a column repeats one of its quad, or of the last quad.
  SharedArray<VertexId> columns;
  /// 48 for each 16 rows of each tile.
  SharedArray<std::uint32_t> words;

  std::int64_t num_windows() const noexcept { return step_offsets.size() - 1; }
  std::int64_t num_steps() const noexcept { return step_offsets.back(); }
  std::int64_t num_tiles() const noexcept { return tile_offsets.back(); }
  int words_per_tile() const noexcept { return height / 16 * quad_strip_words; }
  std::int64_t num_bytes() const noexcept;
  /// Which of the four columns of a quad a row uses, as bits; quads count within the tile.
  unsigned used_columns(std::int64_t tile, int row, int quad) const noexcept;

  /// Throws `bad_data` unless every array has the size described above, the indices of a quad rise,
  /// no edge stands outside the graph or twice, and there are as many as the graph has.
  void validate() const;

  /// The same bytes.
  friend bool operator==(const QuadTiles& a, const QuadTiles& b);
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
