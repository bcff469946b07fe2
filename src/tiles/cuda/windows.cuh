// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/search.cuh"
#include "tiles/cuda/device_tiles.hpp"

/// Windows and the rows they were made of, as kernels that write encodings see them.
namespace tessera::tiles {

struct WindowsView {
  std::int64_t num_windows = 0;
  const EdgeOffset* step_offsets = nullptr;
  const EdgeOffset* tile_offsets = nullptr;
  const VertexId* columns = nullptr;
  const std::uint32_t* words = nullptr;
};

inline WindowsView view_of(const DeviceTiles& tiled) {
  return {tiled.host.num_windows(), tiled.step_offsets.data(), tiled.tile_offsets.data(),
          tiled.columns.data(), tiled.words.data()};
}

struct RowsView {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;

  __device__ EdgeOffset offset(std::int64_t row) const {
    return offsets.narrow != nullptr ? offsets.narrow[row] : offsets.wide[row];
  }
  /// The number of a row's first edge that is not left of a column.
  __device__ EdgeOffset first_edge_from(std::int64_t row, VertexId column) const {
    return cuda::lower_bound(indices, offset(row), offset(row + 1), column);
  }
};

inline RowsView view_of(const cuda::DeviceRows& rows) {
  return {rows.num_rows, rows.offsets(), rows.indices.data()};
}

/// A tile and where it stands.
struct TileInWindow {
  std::int64_t number = 0;
  std::int64_t window = 0;
  std::int64_t in_window = 0;     ///< tiles of the window before it
  std::int64_t first_column = 0;  ///< among all columns of the graph's windows
  std::int64_t end_column = 0;    ///< of the window
};

__device__ inline TileInWindow tile_in_window(const WindowsView& windows, std::int64_t number) {
  TileInWindow tile;
  tile.number = number;
  tile.window = cuda::lower_bound(windows.tile_offsets, 0, windows.num_windows + 1, number + 1) - 1;
  tile.in_window = number - windows.tile_offsets[tile.window];
  tile.first_column =
      windows.step_offsets[tile.window] * step_columns + tile.in_window * tile_columns;
  tile.end_column = windows.step_offsets[tile.window + 1] * step_columns;
  return tile;
}

}  // namespace tessera::tiles
