// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>

#include "tessera/core/device.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"

/// Sparse graph translation: the graph as dense tiles of bits for tensor cores.
///
/// Rows are taken in windows of `height`. The distinct columns of a window, sorted, stand side by
/// side: 16 of them are a step (the k of one matrix instruction), 64 a tile. Which row uses which
/// column is one bit each, in the order in which the lanes of a warp hold the operands of `mma` and
/// `wgmma`. docs/design/tile_format.md draws it.
namespace tessera::tiles {

/// Rows that a window may have.
inline constexpr std::array<int, 6> window_heights = {8, 16, 32, 64, 128, 256};

inline constexpr int step_columns = 16;
inline constexpr int tile_columns = 64;

/// A itself, or A^T, which the backward pass multiplies by.
enum class Side { forward, transposed };

const char* to_string(Side side) noexcept;

/// What all encodings of windows have.
struct WindowTiles {
  VertexId num_rows = 0;  ///< of the side that was translated
  VertexId num_cols = 0;
  EdgeOffset num_edges = 0;
  int height = 64;
  /// Window w has the steps [step_offsets[w], step_offsets[w + 1]), and likewise tiles; the last
  /// tile of a window may have fewer steps than others.
  SharedArray<EdgeOffset> step_offsets;
  SharedArray<EdgeOffset> tile_offsets;
  SharedArray<VertexId> columns;  ///< as many for each step
  SharedArray<std::uint32_t> words;

  std::int64_t num_windows() const noexcept { return step_offsets.size() - 1; }
  std::int64_t num_steps() const noexcept { return step_offsets.back(); }
  std::int64_t num_tiles() const noexcept { return tile_offsets.back(); }
  /// All four arrays together.
  std::int64_t num_bytes() const noexcept;

  /// The same bytes.
  friend bool operator==(const WindowTiles&, const WindowTiles&) = default;
};

/// 16 columns for each step, rising within a window; the last is repeated to fill the last step.
/// 2 * height words for each tile.
struct TiledGraph : WindowTiles {
  int words_per_tile() const noexcept { return 2 * height; }
  /// Without those that fill a window's last step.
  VertexId distinct_columns(std::int64_t window) const noexcept;
  /// Whether a row of a window (0 .. height - 1) uses a column of one of its tiles (0 .. 63).
  bool has_edge(std::int64_t tile, int row, int column) const noexcept;

  /// Throws `bad_data` unless every array has the size and the order described above, no bit stands
  /// outside the graph, every column is used, and there are as many bits as edges.
  void validate() const;
};

/// One line: shape, windows, tiles.
std::ostream& operator<<(std::ostream& out, const TiledGraph& tiled);

/// Values and scales stay with the graph. The same bytes for any number of threads.
TiledGraph translate(const Graph& graph, int height, Side side = Side::forward);

/// The same bytes, made in a place and brought back; a device is a place. Throws
/// `backend_unavailable` where there is no such device.
TiledGraph translate(const Graph& graph, int height, Side side, const Place& place);

/// A graph in two parts: columns that many rows of a window share, as tiles, and the other edges.
struct SplitGraph {
  TiledGraph dense;
  Graph rest;  ///< a pattern of the same shape as `dense`
};

/// Columns that fewer than `min_uses` rows of a window use go to the rest.
SplitGraph translate_dense(const Graph& graph, int height, int min_uses, Side side = Side::forward);

/// The same bytes, made in a place and brought back.
SplitGraph translate_dense(const Graph& graph, int height, int min_uses, Side side,
                           const Place& place);

/// The pattern that was translated (A^T for the transposed side).
Graph to_graph(const TiledGraph& tiled);

}  // namespace tessera::tiles
