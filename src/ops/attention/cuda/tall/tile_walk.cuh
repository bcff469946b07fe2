// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/attention/cuda/tall/launch.hpp"

namespace tessera::ops {

/// Goes over the tiles of pieces [piece, end) of windows.
struct TileWalk {
  const tiles::Piece* pieces;
  std::int32_t piece;
  std::int32_t end;
  std::int32_t step = 0;
  std::int32_t tile = 0;
  std::int32_t steps_left = 0;
  bool begins = false;  ///< whether the tile is the first of its piece
  int4 ahead{};         ///< the head of the next piece, asked for a piece before

  __device__ TileWalk(const TallAttentionLaunch& launch, std::int32_t first, std::int32_t last)
      : pieces(launch.pieces), piece(first), end(last) {
    look_ahead();
  }

  /// Whether there is a tile left, which `step` and `tile` then begin with.
  __device__ bool find() {
    while (steps_left <= 0 && piece < end) {
      step = ahead.x;
      tile = ahead.y;
      steps_left = ahead.z;
      begins = true;
      ++piece;
      look_ahead();
    }
    return steps_left > 0;
  }
  __device__ int num_columns() const {
    const int left = steps_left * tiles::step_columns;
    return left < tiles::tile_columns ? left : tiles::tile_columns;
  }
  __device__ void advance() {
    constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
    step += tile_steps;
    tile += 1;
    steps_left -= tile_steps;
    begins = false;
  }

 private:
  /// In one load: what depends on a second one would wait twice.
  __device__ void look_ahead() {
    if (piece < end) ahead = __ldg(reinterpret_cast<const int4*>(pieces + piece));
    if (piece + 8 < end) cuda::expect_in_l2(pieces + piece + 8);
  }
};

}  // namespace tessera::ops
