// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/pairs/edges.cuh"
#include "ops/attention/cuda/tall/packed.cuh"

/// Sums over the edges of a part. While edges come, each lane adds up those of its own, of `width /
/// 4` features; in the end the lanes of a quarter exchange these until each has all sums of a
/// share, some neighbouring features of one part.
namespace tessera::ops {

/// Adds eight features of a chunk, times a weight.
template <class T>
__device__ void add_weighted_unit(float* sums, float weight, const uint4& unit) {
  const std::uint32_t words[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = unpacked<T>(words[i]);
    sums[2 * i] = fmaf(weight, pair.x, sums[2 * i]);
    sums[2 * i + 1] = fmaf(weight, pair.y, sums[2 * i + 1]);
  }
}

template <int width, int part_edges>
struct PairShare {
  static constexpr int held = width / 4;
  static constexpr int size = width * 2 / (4 * part_edges);
  float of[size];

  /// The half that its part is in; of the parts of this half it is the one that the lane has edges
  /// of.
  __device__ static int half() { return WarpLane::number() / (2 * part_edges) % 2; }
  __device__ static int part() { return PairEdges<part_edges>::part_of(half()); }
  /// Of the head.
  __device__ static int first_feature() {
    const int eighth = part_edges == 8 ? (WarpLane::number() & 8) / 8 * (held / 2) : 0;
    const int place = eighth + (WarpLane::number() & 4) / 4 * size;
    return place / 8 * 32 + WarpLane::quarter() * 8 + place % 8;
  }

  /// All lanes together.
  __device__ PairShare(const float (&sums)[2][held], bool one_row) {
    float row[held];
    exchange<held>(2 * part_edges, row,
                   [&](int i, bool late) { return late ? sums[1][i] : sums[0][i]; });
    if constexpr (part_edges == 8) {
      float half[held / 2];
      exchange<held / 2>(8, half, [&](int i, bool late) { return row[late ? i + held / 2 : i]; });
      exchange<size>(4, of, [&](int i, bool late) { return half[late ? i + size : i]; });
    } else {
      exchange<size>(4, of, [&](int i, bool late) { return row[late ? i + size : i]; });
    }
    if (one_row) {
#pragma unroll
      for (float& sum : of) sum = over_parts(sum);
    }
  }

  /// Adds up a number of each part, in all lanes that have the same features.
  __device__ static float over_parts(float number) {
#pragma unroll
    for (int distance = 2 * part_edges; distance < 32; distance *= 2) {
      number += __shfl_xor_sync(~0u, number, distance);
    }
    return number;
  }

  /// As they are stored.
  template <class T>
  __device__ cuda::Vector<T, 2 * size> narrowed() const {
    return cuda::Vector<T, 2 * size>::narrowed(of);
  }

 private:
  /// Of two parts, this lane keeps one and gets the same of its partner, who keeps the other.
  template <int count, class Part>
  __device__ static void exchange(int distance, float (&to)[count], Part&& part) {
    const bool late = (WarpLane::number() & distance) != 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float early_one = part(i, false);
      const float late_one = part(i, true);
      const float sent = late ? early_one : late_one;
      to[i] = (late ? late_one : early_one) + __shfl_xor_sync(~0u, sent, distance);
    }
  }
};

/// Over the edges of this lane's part of each half, or of all parts where they are one row: all of
/// their lanes get the same.
template <int part_edges, class Join>
__device__ void join_over_edges(float (&numbers)[2], bool one_row, Join&& join) {
#pragma unroll
  for (float& number : numbers) {
#pragma unroll
    for (int distance = 4; distance < 4 * part_edges; distance *= 2) {
      number = join(number, __shfl_xor_sync(~0u, number, distance));
    }
  }
  if (!one_row) return;
  float joint = join(numbers[0], numbers[1]);
#pragma unroll
  for (int distance = 4 * part_edges; distance < 32; distance *= 2) {
    joint = join(joint, __shfl_xor_sync(~0u, joint, distance));
  }
  numbers[0] = numbers[1] = joint;
}
template <int part_edges>
__device__ void add_over_edges(float (&numbers)[2], bool one_row) {
  join_over_edges<part_edges>(numbers, one_row, [](float a, float b) { return a + b; });
}
template <int part_edges>
__device__ void largest_over_edges(float (&numbers)[2], bool one_row) {
  join_over_edges<part_edges>(numbers, one_row, [](float a, float b) { return fmaxf(a, b); });
}

}  // namespace tessera::ops
