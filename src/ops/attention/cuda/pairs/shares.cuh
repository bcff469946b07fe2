// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"
#include "ops/attention/cuda/tall/packed.cuh"

/// Sums over the edges of a half. While edges come, each lane adds up those of its own, of `width /
/// 4` features; in the end the lanes of a quarter exchange these until each has all sums of a
/// share, `width / 16` neighbouring features of one half: lanes from 16 on of half 1.
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

  /// All lanes together.
  __device__ PairShare(const float (&sums)[2][held], bool one_row) {
    float row[held];
    exchange<held>(16, row, [&](int i, bool late) { return late ? sums[1][i] : sums[0][i]; });
    float part[held / 2];
    exchange<held / 2>(8, part, [&](int i, bool late) { return row[late ? i + held / 2 : i]; });
    exchange<size>(4, of, [&](int i, bool late) { return part[late ? i + size : i]; });
    if (!one_row) return;
#pragma unroll
    for (float& sum : of) sum += __shfl_xor_sync(~0u, sum, 16);
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

/// Over the edges of a half: all of its lanes get the same.
__device__ inline float add_over_edges(float number) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) {
    number += __shfl_xor_sync(~0u, number, distance);
  }
  return number;
}
__device__ inline float largest_over_edges(float number) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) {
    number = fmaxf(number, __shfl_xor_sync(~0u, number, distance));
  }
  return number;
}

}  // namespace tessera::ops
