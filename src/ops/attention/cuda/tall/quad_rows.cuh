// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/packed.cuh"

/// Rows of features as sums of matrix products leave them: four lanes have two of every eight
/// features of a row, and of the row eight further on.
namespace tessera::ops {

__device__ inline int quad_lane() { return static_cast<int>(threadIdx.x % 4); }

/// Four words of each of four lanes: lane q gets the q-th of all four, in their order.
__device__ inline uint4 turned_words(std::uint32_t (&words)[4]) {
  const bool high = (quad_lane() & 2) != 0;
  const bool odd = (quad_lane() & 1) != 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t other = __shfl_xor_sync(~0u, high ? words[i] : words[i + 2], 2);
    (high ? words[i] : words[i + 2]) = other;
  }
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const std::uint32_t other = __shfl_xor_sync(~0u, odd ? words[i] : words[i + 1], 1);
    (odd ? words[i] : words[i + 1]) = other;
  }
  return {words[0], words[1], words[2], words[3]};
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
    const uint4 unit = turned_words(words);
    if (exists) reinterpret_cast<uint4*>(to)[first + quad_lane()] = unit;
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
