// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/attention/cuda/tall/launch.hpp"

namespace tessera::ops {

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

  __device__ WindowWalk(const TallAttentionLaunch& launch, std::int32_t first, std::int32_t last)
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
    return {first_row, left < tall_attention_height ? left : tall_attention_height};
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

using TileWalk = WindowWalk<false>;
using TileWalkAhead = WindowWalk<true>;

}  // namespace tessera::ops
