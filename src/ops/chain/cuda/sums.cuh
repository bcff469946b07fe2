// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/chain/cuda/rows.cuh"

/// Sums over all rows of a chain, in double and in an order that is fixed.
namespace tessera::ops {

/// What a thread adds up of its four columns: first one sum of each, then another.
struct ChainTotals {
  double values[8] = {};
};

/// Scratch memory of a block, in which every warp has a share of each sum.
struct ChainShares {
  static constexpr int count = chain_threads / 32;
  double values[count][chain_sums];

  /// What all shares have of the sum that a lane stands for; every warp may ask.
  __device__ double total() const {
    double sum = 0;
#pragma unroll
    for (int share = 0; share < count; ++share) sum += values[share][threadIdx.x % 32];
    return sum;
  }
};
static_assert(chain_sums == 32);

/// Writes what the threads of a block have to the shares of their warps. Each of the eight lanes
/// that have the same columns ends with one of their eight sums: it takes half of what is left in
/// each round, and gives away the other half.
__device__ inline void share_totals(const ChainTotals& totals, ChainShares& shares) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double left[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) left[i] = totals.values[i];
  int sum = 0;
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
    const int distance = half * chain_lanes;
    const bool takes_second = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const double given = takes_second ? left[i] : left[half + i];
      const double taken = takes_second ? left[half + i] : left[i];
      left[i] = taken + __shfl_xor_sync(~0u, given, distance);
    }
    if (takes_second) sum += half;
  }
  const int col = lane % chain_lanes * 4 + sum % 4;
  shares.values[threadIdx.x / 32][sum / 4 * chain_width + col] = left[0];
  __syncthreads();
}
static_assert(8 * chain_lanes == 32);

/// Whether a thread stands for a sum of the first kind.
__device__ inline bool is_first_sum() { return threadIdx.x % chain_sums < chain_width; }

/// Both sums of a thread's column, where each lane of a warp has the one it stands for.
__device__ inline double2 both_sums(double own) {
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  return {__shfl_sync(~0u, own, col), __shfl_sync(~0u, own, chain_width + col)};
}

/// Adds up `value(block, told)` of what all blocks tell; returns the sum that a thread stands for.
/// All loads of a thread are in flight before it waits for the first.
template <class Team, class Value>
__device__ double add_over_blocks(const Team& team, Value&& value, ChainShares& shares) {
  constexpr int at_once = chain_threads / chain_width;
  constexpr int most = Team::most_blocks / at_once;
  const int thread = static_cast<int>(threadIdx.x);
  const int col = thread % chain_width, first = thread / chain_width;
  double2 told[most];
#pragma unroll
  for (int i = 0; i < most; ++i) {
    const int block = first + i * at_once;
    if (block < static_cast<int>(gridDim.x)) told[i] = team.told(block, col);
  }
  double2 total = {};
#pragma unroll
  for (int i = 0; i < most; ++i) {
    const int block = first + i * at_once;
    if (block >= static_cast<int>(gridDim.x)) continue;
    const double2 of_block = value(block, told[i]);
    total.x += of_block.x;
    total.y += of_block.y;
  }
  // Two lanes of a warp have the same column.
  total.x += __shfl_xor_sync(~0u, total.x, chain_width);
  total.y += __shfl_xor_sync(~0u, total.y, chain_width);
  shares.values[thread / 32][thread % 32] = is_first_sum() ? total.x : total.y;
  __syncthreads();
  return shares.total();
}
static_assert(chain_sums == 2 * chain_width);

/// Where the blocks' parts of a sum lie that is left until the end.
__device__ inline double* parts_of(double* left, int sum) { return left + sum * gridDim.x; }

__device__ inline void leave_sum(double* left, int sum, double value) {
  __stcg(parts_of(left, sum) + blockIdx.x, value);
}

/// Calls `finish(sum, total)` for each of `count` sums that all blocks have left, in one lane: the
/// warps of all blocks share them, several lanes for each that read four parts at once.
template <class Finish>
__device__ void add_left_sums(double* left, int count, Finish&& finish) {
  constexpr int warps = chain_threads / 32;
  const int lanes = gridDim.x <= 16 ? 4 : 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int sums_at_once = static_cast<int>(gridDim.x) * warps * (32 / lanes);
  const int warp = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (int first = warp * (32 / lanes); first < count; first += sums_at_once) {
    const int sum = first + lane / lanes;
    double total = 0;
    if (sum < count) {
#pragma unroll 4
      for (unsigned block = lane % lanes; block < gridDim.x; block += lanes) {
        total += __ldcg(parts_of(left, sum) + block);
      }
    }
#pragma unroll 1
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      total += __shfl_xor_sync(~0u, total, distance);
    }
    if (sum < count && lane % lanes == 0) finish(sum, total);
  }
}

}  // namespace tessera::ops
