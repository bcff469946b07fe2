// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/occupancy.cuh"
#include "cuda/together.cuh"
#include "ops/chain/cuda/loss.cuh"
#include "ops/chain/cuda/norms.cuh"
#include "ops/chain/cuda/products.cuh"
#include "ops/chain/cuda/team.cuh"

/// Most of a chain's code runs once, and loading it takes longer than running it: so there is one
/// place for what several steps do, and loops are not unrolled.
namespace tessera::ops {

template <class Team>
struct ChainMemory {
  union {
    WeightSums weights;
    ChainShares shares;
  };
  ChainFactor factor;
  ChainSums sums;
  cuda::ColumnNumbers numbers[chain_width];
  typename Team::Memory of_team;
};

/// What a step does before its sums are known.
template <class T, class Team>
__device__ void begin_step(const ChainStep<T>& step, const ChainShare& share, Team& team,
                           ChainMemory<Team>& memory, double* left, ChainTotals& totals) {
  switch (step.kind) {
    case ChainKind::product: multiply_rows(step.product, share, memory.factor, totals); break;
    case ChainKind::weight: add_weight_gradient(step.weight, share, memory.weights, left); break;
    case ChainKind::norm:
      if (step.norm.training) add_moments(step.norm, share, totals);
      break;
    case ChainKind::norm_gradient:
      if (step.norm_gradient.follows_norm) team.meet();
      add_norm_gradients(step.norm_gradient, share, memory.numbers, totals);
      break;
    case ChainKind::loss: add_cross_entropies(step.loss, share, totals); break;
  }
}

template <class T, class Team>
__device__ void run_step(const ChainStep<T>& step, const ChainLaunch<T>& launch,
                         const ChainShare& share, Team& team, ChainMemory<Team>& memory) {
  double* const left = parts_of(launch.workspace.partials, step.first_left);
  ChainTotals totals;
  begin_step(step, share, team, memory, left, totals);
  if (step.kind == ChainKind::weight) return;
  const bool is_norm = step.kind == ChainKind::norm;
  const bool exchanges = (is_norm && step.norm.training) || step.kind == ChainKind::norm_gradient;
  if (!exchanges && !is_norm && step.left_sums == 0) return;
  if (exchanges || step.left_sums > 0) add_in_block(totals, memory.shares, memory.sums);
  if (step.left_sums > 0 && threadIdx.x < chain_sums) {
    leave_sum(left, static_cast<int>(threadIdx.x), memory.sums.own[threadIdx.x]);
  }
  // Read before the blocks meet, and before the first of them changes it.
  typename Statistics<T>::Column known{};
  if (is_norm && exchanges) {
    if (static_cast<int>(threadIdx.x) < step.norm.cols) {
      known = step.norm.statistics.column(threadIdx.x);
    }
    leave_shifts(step.norm, share, memory.sums);
  }
  if (exchanges) {
    add_in_team(team, launch.rows, launch.rows_per_block, is_norm, memory.shares, memory.sums);
  }
  if (is_norm) {
    find_norm(step.norm, launch.rows, known, memory.sums, memory.numbers);
    normalise_rows(step.norm, share, memory.numbers);
  } else if (exchanges) {
    write_norm_gradients(step.norm_gradient, share, launch.rows, memory.sums, memory.numbers);
  }
}

/// Stores a sum that a step left.
template <class T>
__device__ void finish_sum(const ChainStep<T>& step, int sum, double total) {
  const int row = sum / chain_width, col = sum % chain_width;
  const T value = cuda::narrow<T>(static_cast<float>(total));
  if (step.kind == ChainKind::weight) {
    const WeightStep<T>& of = step.weight;
    if (row == chain_width) {
      if (of.grad_bias != nullptr && col < of.out) of.grad_bias[col] = value;
    } else if (of.grad_weight.data != nullptr && row < of.out && col < of.in) {
      of.grad_weight.data[row * of.grad_weight.stride + col] = value;
    }
    return;
  }
  const bool is_loss = step.kind == ChainKind::loss;
  T* const sums = is_loss ? step.loss.sums : step.product.sums;
  const int cols = is_loss ? step.loss.cols : step.product.out;
  if (row == 0 && col < cols && sums != nullptr) sums[col] = value;
  if (is_loss && sum == chain_width) *step.loss.value = total / step.loss.count;
}

template <class T, class Team>
__global__ __launch_bounds__(chain_threads) void run_chain(
    const __grid_constant__ ChainLaunch<T> launch) {
  __shared__ ChainMemory<Team> memory;
  Team team(launch.workspace, launch.exchanges, memory.of_team);
  cuda::begin_overlapped();
  const int begin = static_cast<int>(blockIdx.x) * launch.rows_per_block;
  const ChainShare share{begin, min(begin + launch.rows_per_block, launch.rows),
                         static_cast<int>(threadIdx.x) % chain_lanes * 4};
#pragma unroll 1
  for (int i = 0; i < launch.count; ++i) {
    run_step(launch.steps[i], launch, share, team, memory);
    __syncthreads();
  }
  if (launch.leaves) {
    team.meet();
#pragma unroll 1
    for (int i = 0; i < launch.count; ++i) {
      const ChainStep<T>& step = launch.steps[i];
      add_left_sums(parts_of(launch.workspace.partials, step.first_left), step.left_sums,
                    [&](int sum, double total) { finish_sum(step, sum, total); });
    }
  }
  team.end();
}

template <class T>
bool run_chain_in_cluster(const ChainLaunch<T>& launch, int blocks, Stream stream) {
  cuda::launch_clusters(run_chain<T, ClusterTeam>, 1, static_cast<unsigned>(blocks), chain_threads,
                        stream, launch);
  return true;
}

template <class T>
bool run_chain_in_grid(const ChainLaunch<T>& launch, int blocks, Stream stream) {
  return cuda::launch_together(run_chain<T, GridTeam>, static_cast<unsigned>(blocks), chain_threads,
                               stream, launch);
}

template <class T>
bool cluster_has_room(int blocks) {
  return cuda::has_clusters() &&
         cuda::allows_clusters_of(run_chain<T, ClusterTeam>, static_cast<unsigned>(blocks),
                                  chain_threads);
}

template <class T>
bool grid_has_room(int blocks) {
  return cuda::launches_together() &&
         cuda::resident_blocks(run_chain<T, GridTeam>, chain_threads, 0) >= blocks;
}

}  // namespace tessera::ops
