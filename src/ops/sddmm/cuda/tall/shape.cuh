// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/wgmma_rows.cuh"
#include "ops/sddmm/cuda/tall/launch.hpp"

namespace tessera::ops {

/// How a kernel is cut to fit. Rows come in chunks of `chunk_bytes` (zeros where the features end).
/// `held` chunks of the window's rows of U stay in registers; with 0, as many chunks as there are
/// pass through, with U's again for every tile. `warps` multiply on mma.sync, each its own 16 rows.
template <class T_, int chunk_bytes_, int held_, int num_slots_, int height_, bool warps_>
struct TallDotShape {
  using T = T_;
  static constexpr int chunk_bytes = chunk_bytes_;
  static constexpr int held = held_;
  static constexpr int num_slots = num_slots_;
  static constexpr int height = height_;
  static constexpr bool warps = warps_;

  static constexpr int groups = height / 64;
  static constexpr int threads = groups * 128;
  static constexpr bool holds = held > 0;
  static constexpr int held_chunks = holds ? held : 1;
  static constexpr int steps = chunk_bytes / 32;
  /// fp32 is multiplied as tf32, with what tf32 leaves out in a second plane.
  static constexpr bool splits = std::is_same_v<T, float>;

  using Tile = tiles::DotTile;
  static_assert(height == tiles::dot_tile_height);
  /// Longer rows continue in another block of the same kind.
  static constexpr int row_pitch = chunk_bytes < 128 ? chunk_bytes : 128;
  using Layout = cuda::RowLayout<row_pitch>;
  static constexpr int block_bytes = 64 * row_pitch;
  static constexpr int slot_bytes = 64 * chunk_bytes;
  static constexpr int chunk_elements = chunk_bytes / static_cast<int>(sizeof(T));

  static constexpr int tile_ring = num_slots <= 4 ? 8 : 16;
  static_assert(tile_ring >= 2 * num_slots);
  /// One row of results, with some room so that rows begin in different banks.
  static constexpr int result_pitch = 64 * static_cast<int>(sizeof(T)) + 16;
  static constexpr int results_bytes = tiles::strip_rows * result_pitch;

  static constexpr int low_at = num_slots * slot_bytes;
  static constexpr int results_at = low_at + (splits ? 2 * slot_bytes : 0);
  static constexpr int tiles_at = results_at + threads / 32 * results_bytes;
  static constexpr int shared_bytes = tiles_at + tile_ring * static_cast<int>(sizeof(Tile));

  __device__ static std::uint32_t offset(int row, int unit) {
    constexpr int units = Layout::units;
    return static_cast<std::uint32_t>(unit / units * block_bytes) +
           Layout::offset(row, unit % units);
  }
};

/// What one slot of rows is.
struct SlotContent {
  bool targets;  ///< rows of U, not of V
  int group;     ///< of U: which 64 rows of the window
  int chunk;
  bool last;  ///< of its tile
};

}  // namespace tessera::ops
