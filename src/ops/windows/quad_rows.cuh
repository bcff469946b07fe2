// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/windows/number_pairs.cuh"

/// Rows of features as sums of matrix products leave them: four lanes have two of every eight
/// features of a row, and of the row eight further on.
namespace tessera::ops {

__device__ inline int quad_lane() { return static_cast<int>(threadIdx.x % 4); }

/// Four lanes with four words each: afterwards word j of lane i is what word i of lane j was.
__device__ inline void transpose_quad(std::uint32_t (&words)[4]) {
  const auto lane = static_cast<unsigned>(threadIdx.x);
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (lane & static_cast<unsigned>(distance)) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      const std::uint32_t sent = upper ? words[i] : words[i + distance];
      const std::uint32_t got = __shfl_xor_sync(~0u, sent, distance);
      (upper ? words[i] : words[i + distance]) = got;
    }
  }
}

/// One row of all groups of four lanes, the first or the second, 16 bytes of a lane at once;
/// nothing where there is no such row.
template <class T, int groups>
__device__ void store_quad_row(T* to, bool exists, const float (&features)[groups][4], int row,
                               float factor) {
#pragma unroll
  for (int first = 0; first < groups; first += 4) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = features[first + i] + 2 * row;
      words[i] = packed<T>(pair[0] * factor, pair[1] * factor);
    }
    transpose_quad(words);
    if (exists) {
      reinterpret_cast<uint4*>(to)[first + quad_lane()] = {words[0], words[1], words[2], words[3]};
    }
  }
}

/// The same of sums that are no results yet.
template <int groups>
__device__ void store_quad_row(float* to, const float (&features)[groups][4], int row) {
#pragma unroll
  for (int i = 0; i < groups; ++i) {
    const float* const pair = features[i] + 2 * row;
    reinterpret_cast<float2*>(to)[4 * i + quad_lane()] = {pair[0], pair[1]};
  }
}

}  // namespace tessera::ops
