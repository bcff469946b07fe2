// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/last_arrival.cuh"
#include "ops/attention/cuda/short/launch.hpp"

/// What a warp found of a window of 16 rows goes to matrices, or to a slot where the window is cut;
/// the warp that fills the last slot of a window puts all of them together.
namespace tessera::ops {

/// A row of a slot: what numbers it has is for a kernel to say.
__device__ inline float* short_slot_row(const TallAttentionLaunch& launch, int slot, int place) {
  return launch.slots + (std::int64_t{slot} * short_attention_height + place) * launch.slot_row;
}

/// After all rows of a piece: calls `join(window)` where the window is cut and this warp filled its
/// last slot of that head.
template <class Head, class Join>
__device__ void finish_short_piece(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                                   Head head, Join&& join) {
  if (piece.slot < 0) return;
  const tiles::CutWindow window = launch.slot_windows[piece.slot];
  unsigned* const counter =
      launch.arrivals + std::int64_t{head} * launch.num_slots + window.first_slot;
  if (cuda::is_last_warp(counter, static_cast<unsigned>(window.num_slots))) join(window);
}

}  // namespace tessera::ops
