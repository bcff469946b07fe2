// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/mma.cuh"
#include "ops/attention/cuda/pairs/ahead/edges.cuh"
#include "ops/attention/cuda/pairs/shares.cuh"
#include "ops/attention/cuda/tall/packed.cuh"

/// Sums over the edges of each part, of a number per edge times features: products of matrices. The
/// 16 edges of a step are what is summed over; rows of the first operand are features. Of the eight
/// columns of the second, 2p has the numbers of the edges of part p and 2p + 1 what these lost when
/// they became 16-bit ones, so that lane 4g + q gets feature g of every eight of part q.
namespace tessera::ops::ahead {

template <int part_edges>
struct PartLanes {
  static constexpr int parts_of_half = PairEdges<part_edges>::parts_of_half;

  /// The part that this lane sums; there need not be one.
  __device__ static int part() { return WarpLane::quarter(); }

  /// Of numbers that lanes have of the parts of their edges, that of the part that this lane sums.
  /// All lanes together.
  __device__ static float of_part(const float (&numbers)[2]) {
    const int from = part() % parts_of_half * part_edges * 4;
    const float early = __shfl_sync(~0u, numbers[0], from);
    const float late = __shfl_sync(~0u, numbers[1], from);
    return part() / parts_of_half % 2 == 0 ? early : late;
  }
};

/// Numbers of the edges of a step as the second operand. All lanes together.
template <class T>
struct EdgeOperand {
  std::uint32_t of[2];

  /// `one_row`: all edges belong to the first part.
  template <int part_edges>
  __device__ static EdgeOperand of_parts(const float (&numbers)[2], bool one_row) {
    EdgeOperand operand;
    const int column = WarpLane::group();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float even = __shfl_sync(~0u, numbers[half], 8 * WarpLane::quarter());
      const float odd = __shfl_sync(~0u, numbers[half], 8 * WarpLane::quarter() + 4);
      const PackedTwice<T> pair(even, odd);
      const int part = one_row ? 0
                               : half * PairEdges<part_edges>::parts_of_half +
                                     2 * WarpLane::quarter() / part_edges;
      const std::uint32_t number = column % 2 == 0 ? pair.high : pair.low;
      operand.of[half] = column / 2 == part ? number : 0;
    }
    return operand;
  }
};

template <class T, int width>
struct PartSums {
  static constexpr int tiles = width / 16;  ///< of 16 features

  float of[tiles][4];

  __device__ void clear() {
#pragma unroll
    for (auto& tile : of) {
#pragma unroll
      for (float& sum : tile) sum = 0;
    }
  }
  __device__ void scale(float factor) {
#pragma unroll
    for (auto& tile : of) {
#pragma unroll
      for (float& sum : tile) sum *= factor;
    }
  }
  /// Features g and g + 8 of a tile, of edges 2q and 2q + 1 of the first half, then of the second.
  __device__ void add(int tile, const std::uint32_t (&features)[4], const EdgeOperand<T>& numbers) {
    cuda::multiply_16x8<T>(of[tile], features, numbers.of);
  }
  /// Of feature 8 unit + g.
  __device__ float sum(int unit) const {
    const float* const pair = of[unit / 2] + unit % 2 * 2;
    return pair[0] + pair[1];
  }
};

}  // namespace tessera::ops::ahead
