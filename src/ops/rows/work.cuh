// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "cuda/offsets.cuh"
#include "ops/rows/launch.hpp"

/// The work of a launch over rows, as its blocks, warps and teams find it.
namespace tessera::ops {

__device__ inline RowSlice slice_of(const int4& raw) {
  RowSlice slice;
  memcpy(&slice, &raw, sizeof slice);
  return slice;
}
__device__ inline RowSlice slice_at(const RowSlice* slices, std::int64_t at) {
  return slice_of(__ldg(reinterpret_cast<const int4*>(slices + at)));
}

/// Which of the wide rows this warp has; there may be fewer.
__device__ inline unsigned wide_row_of_warp(const RowsLaunch::Work& work) {
  return (blockIdx.x - work.num_pieces) * (blockDim.x / 32) + threadIdx.x / 32;
}

/// Number `row` of the graph; no row where all are taken, or where it is not short.
__device__ inline RowSlice short_row_at(const RowsLaunch::Work& work, const cuda::Offsets& offsets,
                                        unsigned row) {
  if (row >= work.num_short) return {};
  const EdgeOffset begin = cuda::fixed_offset_at(offsets, row);
  const EdgeOffset count = cuda::fixed_offset_at(offsets, std::int64_t{row} + 1) - begin;
  if (count > work.short_row) return {};
  return {begin, static_cast<VertexId>(row), static_cast<std::int32_t>(count)};
}

/// What this warp gathers of its block's piece.
__device__ inline RowSlice share_of_warp(const LongPiece& piece) {
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const EdgeOffset share = (piece.end - piece.begin + num_warps - 1) / num_warps;
  const EdgeOffset begin = piece.begin + static_cast<int>(threadIdx.x) / 32 * share;
  const EdgeOffset left = piece.end - begin;
  const EdgeOffset count = left < share ? left : share;
  return {begin, piece.row, count > 0 ? static_cast<std::int32_t>(count) : 0};
}

/// Whether all other pieces of a split row are in their slots; leaves the count ready for the next
/// run.
__device__ inline bool is_last_piece(const RowsLaunch::Work& work, int split_row, int num_slots) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned& num_done = work.num_done[std::int64_t{split_row} * gridDim.y + blockIdx.y];
    last = atomicAdd(&num_done, 1u) + 1 == static_cast<unsigned>(num_slots);
    if (last) num_done = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

}  // namespace tessera::ops
