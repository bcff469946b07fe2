// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::tiles {

/// What translation makes of a graph: windows of `height` rows cut into blocks of `block_columns`.
struct WindowStats {
  int height = 0;
  int block_columns = 0;
  std::int64_t num_windows = 0;
  EdgeOffset num_edges = 0;
  /// Blocks with an edge where columns stay where they are.
  std::int64_t blocks_before = 0;
  /// Blocks where each window's distinct columns stand side by side.
  std::int64_t blocks_after = 0;
  /// Rows of X that all windows gather together.
  std::int64_t distinct_columns = 0;
  std::int64_t csr_bytes = 0;    ///< offsets of 8 bytes and columns of 4
  std::int64_t tiled_bytes = 0;  ///< as `translate` lays them out
  /// blocks_histogram[k] counts windows with [2^(k-1), 2^k) blocks; [0] counts empty ones.
  std::vector<std::int64_t> blocks_histogram;
  /// shared_by[k] counts columns of a window that [2^k, 2^(k+1)) of its rows use.
  std::vector<std::int64_t> shared_by;

  /// Edges for each gathered row: what a window saves against gathering row by row.
  double reuse() const noexcept;
  /// The share of bits that are edges, in the blocks that are left.
  double density_after() const noexcept;
  double density_before() const noexcept;
  /// The share of columns that only fill a window's last block.
  double padding() const noexcept;
};

WindowStats window_stats(const Graph& graph, int height, int block_columns = step_columns,
                         Side side = Side::forward);

std::ostream& operator<<(std::ostream& out, const WindowStats& stats);

}  // namespace tessera::tiles
