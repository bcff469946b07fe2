// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/spmm/cuda/tall/launch.hpp"

namespace tessera::ops {

/// Sums of long pieces are taken in stretches, since matrix units cut off what they add up: nothing
/// is lost here but the rounding of fp32. They stand in a slot of the block, as the threads hold
/// them.
template <int width>
__device__ float4* stretch_slot(const TallLaunch& launch) {
  const std::int64_t block = std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x;
  return reinterpret_cast<float4*>(launch.work.stretch_sums) + block * (width / 8) * blockDim.x +
         threadIdx.x;
}

template <int width>
__device__ void add_stretches(const TallLaunch& launch, float (&sums)[width / 2]) {
  const float4* const slot = stretch_slot<width>(launch);
#pragma unroll
  for (int i = 0; i < width / 8; ++i) {
    const float4 before = slot[i * blockDim.x];
    sums[4 * i] += before.x;
    sums[4 * i + 1] += before.y;
    sums[4 * i + 2] += before.z;
    sums[4 * i + 3] += before.w;
  }
}

template <int width>
__device__ void put_aside(const TallLaunch& launch, const float (&sums)[width / 2]) {
  float4* const slot = stretch_slot<width>(launch);
#pragma unroll
  for (int i = 0; i < width / 8; ++i) {
    slot[i * blockDim.x] =
        make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
  }
}

/// Leaves a piece's sums in its slot, as the threads hold them. The block that comes last of all
/// pieces of the window gets the window's sums, added in the order of the pieces, so that they are
/// the same whoever it is; the others get false.
template <int width>
__device__ bool merge_pieces(const TallLaunch& launch, const tiles::CutWindow& window, int slot,
                             float (&sums)[width / 2]) {
  constexpr int vectors = width / 8;
  const std::int64_t first_of_chunk = std::int64_t{blockIdx.y} * launch.work.num_slots;
  const auto place = [&](std::int64_t of_slot) {
    return reinterpret_cast<float4*>(launch.work.slots) +
           (first_of_chunk + of_slot) * vectors * blockDim.x + threadIdx.x;
  };
  float4* const own = place(slot);
#pragma unroll
  for (int i = 0; i < vectors; ++i) {
    own[i * blockDim.x] =
        make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
  }
  __threadfence();
  __syncthreads();
  unsigned* const arrivals = launch.work.arrivals + first_of_chunk + window.first_slot;
  const auto others = static_cast<unsigned>(window.num_slots - 1);
  const bool last = threadIdx.x == 0 && atomicAdd(arrivals, 1u) == others;
  // For the next run.
  if (last) *arrivals = 0;
  if (!__syncthreads_or(last)) return false;
  __threadfence();
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int i = 0; i < window.num_slots; ++i) {
    const float4* const piece = place(window.first_slot + i);
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const float4 part = __ldcg(piece + j * blockDim.x);
      sums[4 * j] += part.x;
      sums[4 * j + 1] += part.y;
      sums[4 * j + 2] += part.z;
      sums[4 * j + 3] += part.w;
    }
  }
  return true;
}

}  // namespace tessera::ops
