// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/chain/cuda/loss.cuh"
#include "ops/chain/cuda/products.cuh"

namespace tessera::ops {

/// The sums of the columns of what a step stored.
template <class T>
struct ColumnSums {
  cuda::Rows<const T> matrix;
  T* sums;

  static constexpr int num_sums = 1;
  using Term = float;

  struct None {};
  struct Value {
    float value;
  };
  using Place = cuda::Elements<1, false>;
  __device__ None columns(const Place&) const { return {}; }
  __device__ Value fetch(const Place& place, None) const {
    return {cuda::widen(matrix.data[place.row * matrix.stride + place.col])};
  }
  __device__ void row(const Place&, None, Value value, float (&terms)[1][1]) const {
    terms[0][0] = value.value;
  }
  __device__ void finish(std::int64_t col, const double (&totals)[1]) const {
    sums[col] = cuda::narrow<T>(static_cast<float>(totals[0]));
  }
};

template <class T>
struct ChainMemory {
  ChainFactor factor;
  WeightSums weights;
  cuda::ClusterSums<2, cuda::chunk<T>, chain_width, most_chain_blocks, chain_threads> norms;
  cuda::ClusterSums<1, 1, chain_width, most_chain_blocks, chain_threads> columns;
  cuda::ColumnNumbers numbers[chain_width];
};

/// The sums over the columns of what the cluster wrote; nothing where they are not wanted.
template <class T>
__device__ void add_columns(cuda::Rows<T> matrix, int cols, T* sums, cuda::ClusterShare share,
                            ChainMemory<T>& memory) {
  if (sums == nullptr) return;
  __syncthreads();
  cuda::arrive_in_cluster();
  share.lanes = chain_width;
  share.cols = cols;
  const ColumnSums<T> function{{matrix.data, matrix.stride}, sums};
  cuda::pass_in_cluster<1, false>(share, function, cuda::NoPass{}, memory.columns, memory.numbers);
}

template <class T>
__device__ void run_step(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                         ChainMemory<T>& memory) {
  const bool has_weights = step.grad_weight.data != nullptr || step.grad_bias != nullptr;
  if (has_weights) {
    cuda::arrive_in_cluster();
    add_weight_gradient(step, share, memory.weights);
    give_weight_sums(share, memory.weights);
  }
  if (step.grad_x.data != nullptr) write_input_gradient(step, share, memory.factor);
  if (has_weights) finish_weight_sums(step, share, memory.weights);
  add_columns(step.grad_x, step.in, step.grad_x_sums, share, memory);
}

template <class T>
__device__ void run_step(const LossStep<T>& step, const cuda::ClusterShare& share,
                         ChainMemory<T>& memory) {
  cuda::arrive_in_cluster();
  double total[1] = {add_cross_entropies(step, share)};
  memory.columns.add(total, 1, share.block, share.blocks);
  if (share.block == 0 && threadIdx.x == 0) {
    *step.value = memory.columns.total(0, 0, share.blocks) / step.count;
  }
  add_columns(step.gradient, step.cols, step.sums, share, memory);
}

template <class T>
__device__ void run_step(const NormStep<T>& step, cuda::ClusterShare share,
                         ChainMemory<T>& memory) {
  constexpr int width = cuda::chunk<T>;
  share.lanes = step.cols / width;
  share.cols = step.cols;
  if (step.training) {
    // All blocks look at the first row, which another one may have written.
    cuda::arrive_in_cluster();
    cuda::wait_for_cluster();
    cuda::arrive_in_cluster();
    return cuda::pass_in_cluster<width, true>(share, step.moments, step.normalise, memory.norms,
                                              memory.numbers);
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < step.cols) {
    memory.numbers[thread] = step.moments.statistics.running_numbers(thread);
  }
  __syncthreads();
  cuda::Elements<width, true> place;
  place.cols = step.cols;
  place.col = thread % share.lanes * width;
  place.count = width;
  const auto kept = step.normalise.columns(place, memory.numbers + place.col);
  cuda::for_rows_ahead(place, share.begin + thread / share.lanes, share.end,
                       chain_threads / share.lanes, step.normalise, kept,
                       [&](const auto& at, const auto& fetched) {
                         float none[1][width];
                         step.normalise.row(at, kept, fetched, none);
                       });
}

template <class T>
__device__ void run_step(const NormGradStep<T>& step, cuda::ClusterShare share,
                         ChainMemory<T>& memory) {
  constexpr int width = cuda::chunk<T>;
  share.lanes = step.cols / width;
  share.cols = step.cols;
  // What all blocks read of the columns, an earlier step of the first one may have written.
  cuda::arrive_in_cluster();
  cuda::wait_for_cluster();
  cuda::arrive_in_cluster();
  cuda::pass_in_cluster<width, true>(share, step.sums, step.gradient, memory.norms, memory.numbers);
}

template <class T>
__global__ __launch_bounds__(chain_threads) void run_chain(
    const __grid_constant__ ChainLaunch<T> launch) {
  __shared__ ChainMemory<T> memory;
  cuda::begin_overlapped();
  const std::int64_t begin = blockIdx.x * launch.rows_per_block;
  const std::int64_t end = begin + launch.rows_per_block;
  const cuda::ClusterShare share{
      1,     static_cast<int>(blockIdx.x),         static_cast<int>(gridDim.x), 0, 0,
      begin, end < launch.rows ? end : launch.rows};
  for (int i = 0; i < launch.count; ++i) {
    const ChainStep<T>& step = launch.steps[i];
    switch (step.kind) {
      case ChainKind::linear: run_step(step.linear, share, memory.factor); break;
      case ChainKind::linear_gradient: run_step(step.linear_gradient, share, memory); break;
      case ChainKind::norm: run_step(step.norm, share, memory); break;
      case ChainKind::norm_gradient: run_step(step.norm_gradient, share, memory); break;
      case ChainKind::loss: run_step(step.loss, share, memory); break;
    }
    __syncthreads();
  }
}

template <class T>
void run_chain_in_cluster(const ChainLaunch<T>& launch, int blocks, Stream stream) {
  cuda::launch_clusters(run_chain<T>, 1, static_cast<unsigned>(blocks), chain_threads, stream,
                        launch);
}

template <class T>
bool has_room_for_chain(int blocks) {
  return cuda::has_clusters() &&
         cuda::allows_clusters_of(run_chain<T>, static_cast<unsigned>(blocks), chain_threads);
}

}  // namespace tessera::ops
