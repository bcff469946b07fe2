// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/pairs/edges.cuh"
#include "ops/windows/number_pairs.cuh"

/// Sums over the edges of a half. While edges come, each lane adds up those of its own, of `width /
/// 4` features; in the end the lanes of a quarter exchange these until each has all sums of a
/// share, some neighbouring features of one half.
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

template <int width>
struct PairShare {
  static constexpr int held = width / 4;
  static constexpr int size = width / 16;
  float of[size];

  __device__ static int half() { return WarpLane::number() / 16; }
  /// Of the head.
  __device__ static int first_feature() {
    const int place =
        (WarpLane::number() & 8) / 8 * (held / 2) + (WarpLane::number() & 4) / 4 * size;
    return place / 8 * 32 + WarpLane::quarter() * 8 + place % 8;
  }
  /// Of all heads.
  __device__ static std::int64_t begin() {
    return std::int64_t{blockIdx.y} * width + first_feature();
  }

  /// All lanes together.
  __device__ PairShare(const float (&sums)[2][held], bool one_row) {
    float row[held], half[held / 2];
    exchange<held>(16, row, [&](int i, bool late) { return late ? sums[1][i] : sums[0][i]; });
    exchange<held / 2>(8, half, [&](int i, bool late) { return row[late ? i + held / 2 : i]; });
    exchange<size>(4, of, [&](int i, bool late) { return half[late ? i + size : i]; });
    if (one_row) {
#pragma unroll
      for (float& sum : of) sum = over_halves(sum);
    }
  }

  /// Adds up a number of each half, in both lanes that have the same features.
  __device__ static float over_halves(float number) {
    return number + __shfl_xor_sync(~0u, number, 16);
  }

  template <class T>
  __device__ void store(T* to) const {
    cuda::Vector<T, 2 * size>::narrowed(of).store(to);
  }

 private:
  /// Of two parts of what it has, this lane keeps one and gets the same of its partner, which keeps
  /// the other.
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

/// Over the edges of each half, or of both where they are one row: all lanes get the same.
template <class Join>
__device__ void join_over_edges(float (&numbers)[2], bool one_row, Join&& join) {
#pragma unroll
  for (float& number : numbers) {
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      number = join(number, __shfl_xor_sync(~0u, number, distance));
    }
  }
  if (one_row) numbers[0] = numbers[1] = join(numbers[0], numbers[1]);
}
__device__ inline void add_over_edges(float (&numbers)[2], bool one_row) {
  join_over_edges(numbers, one_row, [](float a, float b) { return a + b; });
}
__device__ inline void largest_over_edges(float (&numbers)[2], bool one_row) {
  join_over_edges(numbers, one_row, [](float a, float b) { return fmaxf(a, b); });
}

}  // namespace tessera::ops
