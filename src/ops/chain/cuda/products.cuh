// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cluster_sums.cuh"
#include "ops/chain/cuda/steps.cuh"
#include "ops/gemm/cuda/neighbours.cuh"

/// The products of a chain, in fp32 whatever is stored.
namespace tessera::ops {

/// What the blocks of a cluster tell each other of a gradient of weights; a bias lies behind it.
struct WeightSums {
  static constexpr int count = chain_width * chain_width + chain_width;
  float of_warps[cuda::cluster_threads / 32][count];
  float of_blocks[most_chain_blocks][count];  ///< of the first block alone
};

/// The right factor of a product of rows, inner size by columns, filled up with 0.
struct ChainFactor {
  alignas(16) float values[chain_width][chain_width];
};

template <class T>
__device__ void load_four(cuda::Rows<const T> matrix, std::int64_t row, int first, int cols,
                          int at_once, float (&values)[4]) {
  T stored[4];
  load_neighbours(matrix.data + row * matrix.stride + first, cols - first, at_once, stored);
#pragma unroll
  for (int i = 0; i < 4; ++i) values[i] = cuda::widen(stored[i]);
}

/// `turned`: the matrix has the inner size across its rows.
template <class T>
__device__ void fill_factor(cuda::Rows<const T> matrix, int inner, int cols, bool turned,
                            ChainFactor& factor) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < chain_width * chain_width) {
    const int k = thread / chain_width, col = thread % chain_width;
    const std::int64_t at = turned ? k * matrix.stride + col : col * matrix.stride + k;
    factor.values[k][col] = k < inner && col < cols ? cuda::widen(matrix.data[at]) : 0.0f;
  }
  __syncthreads();
}

/// A thread for each row: calls `finish(row, first, sums)` for each four of its sums.
template <class T, class Finish>
__device__ void multiply_rows(const cuda::ClusterShare& share, cuda::Rows<const T> x, int inner,
                              int cols, const ChainFactor& factor, Finish&& finish) {
  const int at_once = neighbours_at_once(x);
  for (std::int64_t row = share.begin + threadIdx.x; row < share.end;
       row += cuda::cluster_threads) {
    float values[chain_width];
#pragma unroll
    for (int first = 0; first < chain_width; first += 4) {
      load_four(x, row, first, inner, at_once, reinterpret_cast<float(&)[4]>(values[first]));
    }
    float sums[chain_width] = {};
#pragma unroll
    for (int k = 0; k < chain_width; ++k) {
#pragma unroll
      for (int first = 0; first < chain_width; first += 4) {
        const float4 of_factor = *reinterpret_cast<const float4*>(&factor.values[k][first]);
        sums[first] = fmaf(values[k], of_factor.x, sums[first]);
        sums[first + 1] = fmaf(values[k], of_factor.y, sums[first + 1]);
        sums[first + 2] = fmaf(values[k], of_factor.z, sums[first + 2]);
        sums[first + 3] = fmaf(values[k], of_factor.w, sums[first + 3]);
      }
    }
#pragma unroll
    for (int first = 0; first < chain_width; first += 4) {
      if (first < cols) finish(row, first, reinterpret_cast<float(&)[4]>(sums[first]));
    }
  }
}

template <class T>
__device__ void store_four(const float (&values)[4], std::int64_t row, int first, int cols,
                           cuda::Rows<T> matrix) {
  T* const place = matrix.data + row * matrix.stride + first;
  using Four = cuda::Pack<T, 4>;
  if (cols - first >= 4 && reinterpret_cast<std::uintptr_t>(place) % alignof(Four) == 0) {
    Four four;
#pragma unroll
    for (int i = 0; i < 4; ++i) four.values[i] = cuda::narrow<T>(values[i]);
    *reinterpret_cast<Four*>(place) = four;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + i < cols) place[i] = cuda::narrow<T>(values[i]);
    }
  }
}

template <class T>
__device__ void run_step(const LinearStep<T>& step, const cuda::ClusterShare& share,
                         ChainFactor& factor) {
  fill_factor(step.weight, step.in, step.out, false, factor);
  multiply_rows(share, step.x, step.in, step.out, factor,
                [&](std::int64_t row, int first, float(&sums)[4]) {
                  if (step.bias != nullptr) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                      if (first + i < step.out) sums[i] += cuda::widen(step.bias[first + i]);
                    }
                  }
                  store_four(sums, row, first, step.out, step.y);
                });
}

/// The gradient of the weights over the rows of a block: half a warp has a row, a lane four by four
/// of the results.
template <class T>
__device__ void add_weight_gradient(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                                    WeightSums& shared) {
  constexpr int ahead = 4;
  constexpr int team = chain_width * chain_width / 16;
  constexpr int step_rows = cuda::cluster_threads / team;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_out = thread % team / 4 * 4, first_in = thread % 4 * 4;
  const int at_once_x = neighbours_at_once(step.x), at_once_y = neighbours_at_once(step.grad_y);
  float sums[4][4] = {};
  float of_bias[4] = {};
  for (std::int64_t first = share.begin + thread / team; first < share.end;
       first += ahead * step_rows) {
    float x[ahead][4] = {}, y[ahead][4] = {};
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const std::int64_t row = first + i * step_rows;
      if (row >= share.end) break;
      load_four(step.x, row, first_in, step.in, at_once_x, x[i]);
      load_four(step.grad_y, row, first_out, step.out, at_once_y, y[i]);
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        of_bias[j] += y[i][j];
#pragma unroll
        for (int k = 0; k < 4; ++k) sums[j][k] = fmaf(y[i][j], x[i][k], sums[j][k]);
      }
    }
  }
  float* const own = shared.of_warps[thread / 32];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    of_bias[j] += __shfl_xor_sync(~0u, of_bias[j], team);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      sums[j][k] += __shfl_xor_sync(~0u, sums[j][k], team);
      if (thread % 32 < team) own[(first_out + j) * chain_width + first_in + k] = sums[j][k];
    }
    if (thread % 32 < team && first_in == 0) {
      own[chain_width * chain_width + first_out + j] = of_bias[j];
    }
  }
  __syncthreads();
}

/// Gives the first block what this one found. All threads of the cluster have arrived once before.
__device__ inline void give_weight_sums(const cuda::ClusterShare& share, WeightSums& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  cuda::wait_for_cluster();
  if (thread < WeightSums::count) {
    float sum = shared.of_warps[0][thread];
#pragma unroll
    for (int warp = 1; warp < cuda::cluster_threads / 32; ++warp) {
      sum += shared.of_warps[warp][thread];
    }
    cuda::store_in_cluster(&shared.of_blocks[share.block][thread], 0, sum);
  }
  cuda::arrive_in_cluster();
}

/// Adds what all blocks gave.
template <class T>
__device__ void finish_weight_sums(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                                   const WeightSums& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  cuda::wait_for_cluster();
  if (share.block != 0 || thread >= WeightSums::count) return;
  float sum = shared.of_blocks[0][thread];
  for (int block = 1; block < share.blocks; ++block) sum += shared.of_blocks[block][thread];
  const int row = thread / chain_width, col = thread % chain_width;
  if (row == chain_width) {
    if (step.grad_bias != nullptr && col < step.out) step.grad_bias[col] = cuda::narrow<T>(sum);
  } else if (step.grad_weight.data != nullptr && row < step.out && col < step.in) {
    step.grad_weight.data[row * step.grad_weight.stride + col] = cuda::narrow<T>(sum);
  }
}

template <class T>
__device__ void write_input_gradient(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                                     ChainFactor& factor) {
  fill_factor(step.weight, step.out, step.in, true, factor);
  multiply_rows(share, step.grad_y, step.out, step.in, factor,
                [&](std::int64_t row, int first, float(&sums)[4]) {
                  if (step.before_relu) {
                    const T* const results = step.x.data + row * step.x.stride + first;
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                      if (first + i < step.in && cuda::widen(results[i]) <= 0) sums[i] = 0;
                    }
                  }
                  store_four(sums, row, first, step.in, step.grad_x);
                });
}

}  // namespace tessera::ops
