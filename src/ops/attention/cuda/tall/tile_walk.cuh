// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/last_arrival.cuh"
#include "ops/attention/cuda/tall/launch.hpp"

/// What all passes over windows of 64 rows go by: a warp has 16 rows, of which lane 4 g + q has to
/// do with rows g and g + 8.
namespace tessera::ops {

/// Where row g + 8 `row` of this lane's warp lies in the window.
__device__ inline int own_place(int row) {
  return static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(threadIdx.x % 32) / 4 + 8 * row;
}
/// Over the four lanes of a row.
__device__ inline float over_lanes(float sum) {
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

/// Whether something is out of range in a tile, by the warps that brought it.
struct alignas(16) WarpFlags {
  int of_warps[tall_window_threads / 32];

  __device__ void set(bool flag) {
    const int any = __any_sync(~0u, flag);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = any;
  }
  __device__ bool any() const {
    const int4 all = *reinterpret_cast<const int4*>(of_warps);
    return (all.x | all.y | all.z | all.w) != 0;
  }
};

/// The rows of a window.
struct WindowRows {
  VertexId first;
  VertexId count;
};

/// Goes over the tiles of pieces [piece, end) of windows. Who looks ahead has asked for the head of
/// a piece when it comes to it, at the cost of registers: a wait for one load is a wait for all
/// that were asked for before, so that `find` belongs before the loads of a tile, and `advance`
/// behind.
template <bool looks_ahead>
struct WindowWalk {
  const tiles::Piece* pieces;
  std::int32_t piece;
  std::int32_t end;
  std::int32_t step = 0;
  std::int32_t tile = 0;
  std::int32_t steps_left = 0;
  VertexId first_row = 0;
  bool begins = false;  ///< whether the tile is the first of its piece
  int4 head{};          ///< of `piece`, where it was looked at

  __device__ WindowWalk(const WindowsLaunch& launch, std::int32_t first, std::int32_t last)
      : pieces(launch.pieces), piece(first), end(last) {
    if constexpr (looks_ahead) look();
  }

  /// Whether there is a tile left, which `step` and `tile` then begin with. Behind a piece without
  /// steps no other piece has some.
  __device__ bool find() {
    if (steps_left <= 0 && piece < end) {
      if constexpr (!looks_ahead) look();
      step = head.x;
      tile = head.y;
      steps_left = head.z;
      first_row = head.w;
      begins = true;
      ++piece;
    }
    return steps_left > 0;
  }
  /// Of the tile's window in a matrix of `num_rows` rows.
  __device__ WindowRows rows(VertexId num_rows) const {
    const VertexId left = num_rows - first_row;
    return {first_row, left < tall_window_height ? left : tall_window_height};
  }
  __device__ int num_columns() const {
    const int left = steps_left * tiles::step_columns;
    return left < tiles::tile_columns ? left : tiles::tile_columns;
  }
  __device__ void advance() {
    if constexpr (looks_ahead) {
      if (begins) look();
    }
    constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
    step += tile_steps;
    tile += 1;
    steps_left -= tile_steps;
    begins = false;
  }

 private:
  /// In one load: what depends on a second one would wait twice.
  __device__ void look() {
    if (piece < end) head = __ldg(reinterpret_cast<const int4*>(pieces + piece));
    if (piece + 8 < end) cuda::expect_in_l2(pieces + piece + 8);
  }
};

/// A row of a slot: what numbers it has is for a pass to say.
__device__ inline float* slot_row_of(const WindowsLaunch& launch, int slot, int place) {
  return launch.slots + (std::int64_t{slot} * tall_window_height + place) * launch.slot_row;
}

/// After all rows of a piece: calls join(window) where the window is cut and this block filled its
/// last slot.
template <class Join>
__device__ void finish_tall_piece(const WindowsLaunch& launch, const tiles::Piece& piece,
                                  Join&& join) {
  if (piece.slot < 0) return;
  const tiles::CutWindow window = launch.slot_windows[piece.slot];
  unsigned* const counter =
      launch.arrivals + std::int64_t{blockIdx.y} * launch.num_slots + window.first_slot;
  if (cuda::is_last_block(counter, static_cast<unsigned>(window.num_slots))) join(window);
}

using TileWalk = WindowWalk<false>;
using TileWalkAhead = WindowWalk<true>;

}  // namespace tessera::ops
