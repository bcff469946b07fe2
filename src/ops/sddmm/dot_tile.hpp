// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/types.hpp"

/// Dot products on tiles: what their kernels read.
///
/// A tile is 64 distinct columns of a window of rows (tiles/tiled_graph.hpp), here with a list of
/// its edges instead of bits: the matrix unit computes all products of a tile, and the list says
/// which of them to keep. A strip is 16 rows of a window, the share of a warp. A strip's edges in a
/// tile stand row by row, in blocks of 64: word k of a block holds edge k in its low half and edge
/// k + 32 in its high half, each as row * 64 + column.
namespace tessera::ops {

inline constexpr int dot_tile_columns = 64;
inline constexpr int strip_rows = 16;
inline constexpr int code_block_edges = 64;
inline constexpr int code_block_words = 32;

template <int height>
struct alignas(16) DotTile {
  static constexpr int num_strips = height / strip_rows;

  EdgeOffset first_edge = 0;  ///< of the window, in CSR
  VertexId first_row = 0;
  std::int16_t num_columns = 0;
  std::int16_t first_of_window = 0;
  std::uint32_t first_blocks[num_strips] = {};  ///< of each strip's codes
  std::uint16_t counts[num_strips] = {};        ///< edges of each strip
  /// Beyond the last there are zeros.
  alignas(16) VertexId columns[dot_tile_columns] = {};
  /// What is added to the number of an edge in its strip's list: its place in the window's edges.
  std::int32_t shifts[height] = {};
};

}  // namespace tessera::ops
