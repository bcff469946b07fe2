// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/together.cuh"
#include "ops/chain/cuda/loss.cuh"
#include "ops/chain/cuda/norms.cuh"
#include "ops/chain/cuda/products.cuh"
#include "ops/chain/cuda/team.cuh"

/// Most of a chain's code runs once, and loading it takes longer than running it: so there is one
/// place for what several steps do, and loops are not unrolled.
namespace tessera::ops {

template <class T, class Team>
struct ChainMemory {
  union {
    WeightSums weights;
    ChainShares shares[2];  ///< of threads, and of what blocks tell
  };
  ChainFactor factors[most_chain_calls];
  ChainColumns<T> columns;
  ChainLabels labels;
  double sums[chain_sums];
  typename Team::Memory of_team;
};

template <class T, class Team>
__device__ void run_step(int number, const ChainLaunch<T>& launch, const ChainBlock<T>& block,
                         Team& team, ChainMemory<T, Team>& memory) {
  const ChainStep<T>& step = launch.steps[number];
  double* const left = parts_of(launch.workspace.partials, step.first_left);
  ChainTotals totals;
  switch (step.kind) {
    case ChainKind::product: multiply_rows(step.product, block, memory.factors, totals); break;
    case ChainKind::weight: return add_weight_gradient(step.weight, block, memory.weights, left);
    case ChainKind::norm:
      if (step.norm.training) add_moments(step.norm, block, totals);
      break;
    case ChainKind::norm_gradient:
      add_norm_gradients(step.norm_gradient, number, block, memory.columns, totals);
      break;
    case ChainKind::loss: add_cross_entropies(step.loss, block, memory.labels, totals); break;
  }
  const bool is_norm = step.kind == ChainKind::norm;
  const bool is_gradient = step.kind == ChainKind::norm_gradient;
  const bool exchanges = is_gradient || (is_norm && step.norm.training);
  if (exchanges || step.left_sums > 0) share_totals(totals, memory.shares[0]);
  if (exchanges) {
    add_in_team(launch, step, block, team, memory.shares, memory.sums);
  } else if (step.left_sums > 0 && threadIdx.x < chain_sums) {
    leave_sum(left, static_cast<int>(threadIdx.x), memory.shares[0].total());
  }
  if (is_norm) {
    find_norm(step.norm, number, block.cols(step.norm.x), memory.sums, memory.columns);
    normalise_rows(step.norm, block, memory.columns.numbers);
  } else if (is_gradient) {
    write_norm_gradients(step.norm_gradient, block, launch.share_of_row, memory.sums,
                         memory.columns.numbers);
  }
}

/// Stores a sum that was left.
template <class T>
__device__ void finish_sum(const ChainLaunch<T>& launch, int number, double total) {
  const ChainStep<T>& step = launch.steps[launch.step_of_left[number / chain_width]];
  const int sum = number - step.first_left;
  const int row = sum / chain_width, col = sum % chain_width;
  const T value = cuda::narrow<T>(static_cast<float>(total));
  if (step.kind == ChainKind::weight) {
    const WeightStep<T>& weight = step.weight;
    const int in = launch.matrix[weight.x].cols, out = launch.matrix[weight.grad_y].cols;
    if (row == chain_width) {
      if (weight.grad_bias != nullptr && col < out) weight.grad_bias[col] = value;
    } else if (weight.grad_weight.data != nullptr && row < out && col < in) {
      weight.grad_weight.data[row * weight.grad_weight.stride + col] = value;
    }
    return;
  }
  const bool is_loss = step.kind == ChainKind::loss;
  T* const sums = is_loss ? step.loss.sums : step.product.sums;
  const int cols = launch.matrix[is_loss ? step.loss.logits : step.product.y].cols;
  if (row == 0 && col < cols && sums != nullptr) sums[col] = value;
  if (is_loss && sum == chain_width) *step.loss.value = total * step.loss.share;
}

/// Brings what steps read: all loads are in flight before the first wait.
template <class T, class Team>
__device__ void fetch_inputs(const ChainLaunch<T>& launch, const ChainBlock<T>& block,
                             ChainMemory<T, Team>& memory) {
#pragma unroll 1
  for (int i = 0; i == 0 || i < max(launch.factors, launch.given); i += 2) {
    auto pair = block.fetch_pair(i);
    const auto first = fetch_factor(launch, i), second = fetch_factor(launch, i + 1);
    if (i == 0) {
      const FetchedLabel label = fetch_label(launch, block);
      fetch_columns(launch, memory.columns);
      keep_label(label, memory.labels);
    }
    keep_factor(launch, i, first, memory.factors);
    keep_factor(launch, i + 1, second, memory.factors);
    block.keep_pair(i, pair);
  }
}

template <class T, class Team>
__global__ __launch_bounds__(chain_threads) void run_chain(
    const __grid_constant__ ChainLaunch<T> launch) {
  extern __shared__ __align__(16) float copies[];
  __shared__ ChainMemory<T, Team> memory;
  Team team(launch.workspace, launch.exchanges, memory.of_team);
  cuda::begin_overlapped();
  const ChainBlock<T> block(launch, copies);
  fetch_inputs(launch, block, memory);
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < launch.count; ++i) {
    run_step(i, launch, block, team, memory);
    __syncthreads();
  }
  if (launch.left_sums > 0) {
    team.meet();
    add_left_sums(launch.workspace.partials, launch.left_sums,
                  [&](int sum, double total) { finish_sum(launch, sum, total); });
  }
  team.end();
}

template <class T>
bool launch_chain(const ChainLaunch<T>& launch, bool in_cluster, int blocks, Stream stream) {
  const int bytes = launch.shared_bytes();
  if (!in_cluster) {
    return cuda::launch_together(run_chain<T, GridTeam>, blocks, chain_threads, bytes, stream,
                                 launch);
  }
  const auto cluster = static_cast<unsigned>(blocks);
  cuda::launch_clusters(run_chain<T, ClusterTeam>, dim3(cluster), cluster, chain_threads,
                        static_cast<std::size_t>(bytes), stream, launch);
  return true;
}

template <class T>
int chain_room(bool in_cluster, int blocks) {
  return in_cluster ? cuda::room_in_cluster(run_chain<T, ClusterTeam>, blocks, chain_threads)
                    : cuda::room_in_grid(run_chain<T, GridTeam>, blocks, chain_threads);
}

}  // namespace tessera::ops
