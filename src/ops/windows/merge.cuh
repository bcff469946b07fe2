// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/windows/launch.hpp"

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

/// Sums of the pieces of a window, each in its slot, as the threads of a block hold them. They are
/// added up in groups of four, then the sums of four groups, and so on: always the same ones in the
/// same order, so that a window's sums are the same whoever comes last.
///
///     pieces     0 1 2 3   4 5 6 7   8 9
///     span 1     0 ......  4 ......  8 .
///     span 4     0 ................  8
template <int width, int threads>
class PieceSums {
 public:
  static constexpr int group = 4;
  static constexpr int vectors = width / 8;

  __device__ PieceSums(const TallLaunch& launch, const tiles::CutWindow& window)
      : count_(window.num_slots) {
    const std::int64_t first = std::int64_t{blockIdx.y} * launch.work.num_slots + window.first_slot;
    sums_ = reinterpret_cast<float4*>(launch.work.slots) + first * vectors * threads + threadIdx.x;
    arrivals_ = launch.work.arrivals + first;
  }

  /// Four of a thread's sums.
  __device__ float4& at(int piece, int vector) const {
    return sums_[(std::int64_t{piece} * vectors + vector) * threads];
  }

  __device__ static int first_of_group(int piece, int span) { return piece & -(group * span); }
  __device__ bool is_alone(int piece, int span) const {
    return first_of_group(piece, span) + span >= count_;
  }
  /// Whether a group of that span has all pieces of the window.
  __device__ bool is_whole(int span) const { return group * span >= count_; }

  /// Whether this block comes last of a group, and sees what all others left.
  __device__ bool completes(int piece, int span) const {
    const int first = first_of_group(piece, span);
    // Nobody else's second piece is this group's second piece.
    unsigned* const arrivals = arrivals_ + first + span;
    __syncthreads();
    bool last = false;
    if (threadIdx.x == 0) {
      __threadfence();
      last = atomicAdd(arrivals, 1u) + 1 == static_cast<unsigned>(members(first, span));
      if (last) *arrivals = 0;  // for the next run
      __threadfence();
    }
    return __syncthreads_or(last);
  }

  __device__ float4 sum_of_group(int first, int span, int vector) const {
    float4 parts[group] = {};
#pragma unroll
    for (int i = 0; i < group; ++i) {
      if (i < members(first, span)) parts[i] = __ldcg(&at(first + i * span, vector));
    }
    return make_float4(parts[0].x + parts[1].x + parts[2].x + parts[3].x,
                       parts[0].y + parts[1].y + parts[2].y + parts[3].y,
                       parts[0].z + parts[1].z + parts[2].z + parts[3].z,
                       parts[0].w + parts[1].w + parts[2].w + parts[3].w);
  }

  /// Leaves a group's sums with its first piece.
  __device__ void put_sum_of_group(int first, int span) const {
    constexpr int at_once = 4;
#pragma unroll 1
    for (int vector = 0; vector < vectors; vector += at_once) {
      float4 sums[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) sums[i] = sum_of_group(first, span, vector + i);
#pragma unroll
      for (int i = 0; i < at_once; ++i) at(first, vector + i) = sums[i];
    }
  }

 private:
  __device__ int members(int first, int span) const {
    return min(group, (count_ - first + span - 1) / span);
  }

  int count_;
  float4* sums_;
  unsigned* arrivals_;
};

/// Leaves a piece's sums to its window. The block that comes last of all gets the window's sums;
/// the others get false. No sums stay in registers on the way, which leaves them to loads.
template <int width, int threads>
__device__ bool merge_in_groups(const TallLaunch& launch, const tiles::CutWindow& window, int slot,
                                float (&sums)[width / 2]) {
  using Pieces = PieceSums<width, threads>;
  const Pieces pieces(launch, window);
  const int piece = slot - window.first_slot;
#pragma unroll
  for (int i = 0; i < Pieces::vectors; ++i) {
    pieces.at(piece, i) =
        make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
  }
  int span = 1;
  for (;; span *= Pieces::group) {
    if (pieces.is_alone(piece, span)) continue;
    if (!pieces.completes(piece, span)) return false;
    if (pieces.is_whole(span)) break;
    pieces.put_sum_of_group(Pieces::first_of_group(piece, span), span);
  }
#pragma unroll
  for (int i = 0; i < Pieces::vectors; ++i) {
    const float4 sum = pieces.sum_of_group(0, span, i);
    sums[4 * i] = sum.x;
    sums[4 * i + 1] = sum.y;
    sums[4 * i + 2] = sum.z;
    sums[4 * i + 3] = sum.w;
  }
  return true;
}

/// The same for kernels whose threads have rows of X under way in registers, and for sums of whole
/// numbers: in the order of the pieces, by one block, from `first` on. With loads of a group
/// between them, compilers wait for these rows before they multiply others, which takes 6 to 9 % on
/// graphs without any pieces. A thread has `count` sums; `sum_at(i)` is one of them.
template <class Four, int count, class Sum, class SumAt>
__device__ bool merge_in_turn(const TallLaunch::Work& work, const tiles::CutWindow& window,
                              int slot, unsigned threads, Sum first, SumAt&& sum_at) {
  const std::int64_t first_of_chunk = std::int64_t{blockIdx.y} * work.num_slots;
  const auto place = [&](std::int64_t of_slot) {
    return reinterpret_cast<Four*>(work.slots) +
           (first_of_chunk + of_slot) * (count / 4) * threads + threadIdx.x;
  };
  Four* const own = place(slot);
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    own[i / 4 * threads] = Four{sum_at(i), sum_at(i + 1), sum_at(i + 2), sum_at(i + 3)};
  }
  __threadfence();
  __syncthreads();
  unsigned* const arrivals = work.arrivals + first_of_chunk + window.first_slot;
  const auto others = static_cast<unsigned>(window.num_slots - 1);
  const bool last = threadIdx.x == 0 && atomicAdd(arrivals, 1u) == others;
  // For the next run.
  if (last) *arrivals = 0;
  if (!__syncthreads_or(last)) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < count; ++i) sum_at(i) = first;
  for (int k = 0; k < window.num_slots; ++k) {
    const Four* const piece = place(window.first_slot + k);
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const Four part = __ldcg(piece + i / 4 * threads);
      sum_at(i) += part.x;
      sum_at(i + 1) += part.y;
      sum_at(i + 2) += part.z;
      sum_at(i + 3) += part.w;
    }
  }
  return true;
}

template <class Loader>
__device__ bool merge_pieces(const TallLaunch& launch, const tiles::CutWindow& window, int slot,
                             float (&sums)[Loader::width / 2]) {
  if constexpr (Loader::copies) {
    return merge_in_groups<Loader::width, Loader::threads>(launch, window, slot, sums);
  } else {
    return merge_in_turn<float4, Loader::width / 2>(launch.work, window, slot, blockDim.x, 0.0f,
                                                    [&](int i) -> float& { return sums[i]; });
  }
}

}  // namespace tessera::ops
