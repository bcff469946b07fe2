// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/chain/cuda/rows.cuh"

/// Sums over all rows of a chain, in double and in an order that is fixed.
namespace tessera::ops {

/// What a thread adds up of its four columns: two sums of each.
struct ChainTotals {
  double values[8] = {};

  __device__ void add(int sum, const float (&terms)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[4 * sum + i] += static_cast<double>(terms[i]);
  }
};

/// The sums of the blocks: `own` of this one, first those of the first kind, `all` of all of them.
struct ChainSums {
  double own[chain_sums];
  double all[2][chain_sums];
};

/// Scratch memory of a block.
struct ChainShares {
  static constexpr int count = chain_threads / chain_sums;
  double values[count][chain_sums];

  /// A thread for each sum adds what all shares have of it.
  __device__ void add(double* sums) const {
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < chain_sums) {
      double sum = 0;
#pragma unroll 8
      for (int share = 0; share < count; ++share) sum += values[share][thread];
      sums[thread] = sum;
    }
    __syncthreads();
  }
};
static_assert(ChainShares::count == chain_threads / 32);

/// Adds up what the threads of a block have.
__device__ inline void add_in_block(ChainTotals& totals, ChainShares& shares, ChainSums& sums) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
#pragma unroll 1
  for (int distance = 16; distance >= chain_lanes; distance /= 2) {
#pragma unroll
    for (double& value : totals.values) value += __shfl_xor_sync(~0u, value, distance);
  }
  if (lane < chain_lanes) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      shares.values[thread / 32][i / 4 * chain_width + lane * 4 + i % 4] = totals.values[i];
    }
  }
  shares.add(sums.own);
}

/// Rows of a block.
__device__ inline int rows_of_block(int rows, int rows_per_block, int block) {
  return min(max(rows - block * rows_per_block, 0), rows_per_block);
}

/// Adds `own` of all blocks to `all[0]`. With `of_means` the first kind are sums of numbers, and
/// `all[1]` gets, by column, how far the means of the blocks are from that of all rows, squared and
/// counted for each row.
template <class Team>
__device__ void add_in_team(Team& team, int rows, int rows_per_block, bool of_means,
                            ChainShares& shares, ChainSums& sums) {
  team.publish(sums.own);
  team.meet();
  const int thread = static_cast<int>(threadIdx.x);
  const int sum = thread % chain_sums, share = thread / chain_sums;
  const auto blocks = static_cast<int>(gridDim.x);
  const int rounds = of_means ? 2 : 1;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    double total = 0;
#pragma unroll 4
    for (int block = share; block < blocks; block += ChainShares::count) {
      double of_block = team.published(block, sum);
      if (round == 1) {
        const auto count = static_cast<double>(rows_of_block(rows, rows_per_block, block));
        const double apart = of_block / count - sums.all[0][sum] / static_cast<double>(rows);
        of_block = count > 0 ? apart * apart * count : 0;
      }
      total += of_block;
    }
    shares.values[share][sum] = total;
    shares.add(sums.all[round]);
  }
}

/// Where the blocks' parts of a sum lie that is left until the end.
__device__ inline double* parts_of(double* left, int sum) { return left + sum * gridDim.x; }

__device__ inline void leave_sum(double* left, int sum, double value) {
  __stcg(parts_of(left, sum) + blockIdx.x, value);
}

/// Calls `finish(sum, total)` for each of `count` sums that all blocks have left, in one lane: the
/// warps of all blocks share them, two for a warp where there are few blocks.
template <class Finish>
__device__ void add_left_sums(double* left, int count, Finish&& finish) {
  constexpr int warps = chain_threads / 32;
  const int lanes = gridDim.x <= 16 ? 16 : 32;
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
