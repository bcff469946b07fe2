// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/cluster_sums.cuh"
#include "ops/chain/cuda/steps.cuh"

/// The products of a chain, in fp32 whatever is stored.
namespace tessera::ops {

/// What the blocks of a cluster tell each other of a gradient of weights; a bias lies behind it.
struct WeightSums {
  static constexpr int count = chain_width * chain_width + chain_width;
  float of_warps[chain_threads / 32][count];
  float of_blocks[most_chain_blocks][count];  ///< of the first block alone
};

/// The right factor of a product of rows, inner size by columns, and what is added to its columns;
/// filled up with 0.
struct ChainFactor {
  alignas(16) float values[chain_width][chain_width];
  alignas(16) float bias[chain_width];
};

/// A matrix of which a thread has whole rows, filled up with 0.
template <class T>
struct ChainRows {
  using Four = cuda::Pack<std::remove_const_t<T>, 4>;
  T* data;
  std::int64_t stride;
  int cols;
  bool in_fours;  ///< on boundaries

  template <class U>
  __device__ ChainRows(cuda::Rows<U> rows, int columns)
      : data(rows.data),
        stride(rows.stride),
        cols(columns),
        in_fours(reinterpret_cast<std::uintptr_t>(rows.data) % alignof(Four) == 0 &&
                 rows.stride % 4 == 0 && columns % 4 == 0) {}

  /// Four columns from `first` on.
  __device__ void load_four(std::int64_t row, int first, float (&values)[4]) const {
    const T* const place = data + row * stride + first;
    if (in_fours) {
      Four four{};
      if (first < cols) four = *reinterpret_cast<const Four*>(place);
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = cuda::widen(four.values[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = first + i < cols ? cuda::widen(place[i]) : 0.0f;
    }
  }

  __device__ void load(std::int64_t row, float (&values)[chain_width]) const {
    const T* const place = data + row * stride;
    if (in_fours) {
#pragma unroll
      for (int first = 0; first < chain_width; first += 4) {
        Four four{};
        if (first < cols) four = *reinterpret_cast<const Four*>(place + first);
#pragma unroll
        for (int i = 0; i < 4; ++i) values[first + i] = cuda::widen(four.values[i]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < chain_width; ++i) values[i] = i < cols ? cuda::widen(place[i]) : 0.0f;
    }
  }

  __device__ void store(const float (&values)[chain_width], std::int64_t row) const {
    T* const place = data + row * stride;
    if (in_fours) {
#pragma unroll
      for (int first = 0; first < chain_width; first += 4) {
        Four four;
#pragma unroll
        for (int i = 0; i < 4; ++i) four.values[i] = cuda::narrow<T>(values[first + i]);
        if (first < cols) *reinterpret_cast<Four*>(place + first) = four;
      }
    } else {
#pragma unroll
      for (int i = 0; i < chain_width; ++i) {
        if (i < cols) place[i] = cuda::narrow<T>(values[i]);
      }
    }
  }
};

/// `turned`: the matrix has the inner size across its rows. The bias may be null.
template <class T>
__device__ void fill_factor(cuda::Rows<const T> matrix, const T* bias, int inner, int cols,
                            bool turned, ChainFactor& factor) {
  static_assert(chain_threads == chain_width * chain_width);
  const int k = static_cast<int>(threadIdx.x) / chain_width;
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  const std::int64_t at = turned ? k * matrix.stride + col : col * matrix.stride + k;
  factor.values[k][col] = k < inner && col < cols ? cuda::widen(matrix.data[at]) : 0.0f;
  if (k == 0) factor.bias[col] = bias != nullptr && col < cols ? cuda::widen(bias[col]) : 0.0f;
  __syncthreads();
}

/// A thread for each row: calls `finish(row, sums)`.
template <class T, class Finish>
__device__ void multiply_rows(const cuda::ClusterShare& share, const ChainRows<const T>& x,
                              const ChainFactor& factor, Finish&& finish) {
#pragma unroll 1
  for (std::int64_t row = share.begin + threadIdx.x; row < share.end; row += chain_threads) {
    float values[chain_width], sums[chain_width] = {};
    x.load(row, values);
    const auto each_four = [&](const float(&factors)[chain_width], auto&& visit) {
#pragma unroll
      for (int first = 0; first < chain_width; first += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&factors[first]);
        visit(sums[first], four.x);
        visit(sums[first + 1], four.y);
        visit(sums[first + 2], four.z);
        visit(sums[first + 3], four.w);
      }
    };
#pragma unroll
    for (int k = 0; k < chain_width; ++k) {
      each_four(factor.values[k],
                [&](float& sum, float other) { sum = fmaf(values[k], other, sum); });
    }
    each_four(factor.bias, [](float& sum, float other) { sum += other; });
    finish(row, sums);
  }
}

template <class T>
__device__ void run_step(const LinearStep<T>& step, const cuda::ClusterShare& share,
                         ChainFactor& factor) {
  fill_factor(step.weight, step.bias, step.in, step.out, false, factor);
  const ChainRows<T> y(step.y, step.out);
  multiply_rows(share, ChainRows<const T>(step.x, step.in), factor,
                [&](std::int64_t row, const float(&sums)[chain_width]) { y.store(sums, row); });
}

/// The gradient of the weights over the rows of a block: half a warp has a row, a lane four by four
/// of the results.
template <class T>
__device__ void add_weight_gradient(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                                    WeightSums& shared) {
  constexpr int ahead = 4;
  constexpr int team = chain_width * chain_width / 16;
  constexpr int step_rows = chain_threads / team;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_out = thread % team / 4 * 4, first_in = thread % 4 * 4;
  const ChainRows<const T> of_x(step.x, step.in), of_y(step.grad_y, step.out);
  float sums[4][4] = {};
  float of_bias[4] = {};
#pragma unroll 1
  for (std::int64_t first = share.begin + thread / team; first < share.end;
       first += ahead * step_rows) {
    float x[ahead][4] = {}, y[ahead][4] = {};
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const std::int64_t row = first + i * step_rows;
      if (row >= share.end) break;
      of_x.load_four(row, first_in, x[i]);
      of_y.load_four(row, first_out, y[i]);
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
  cuda::wait_for_cluster();
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < WeightSums::count; i += chain_threads) {
    float sum = shared.of_warps[0][i];
#pragma unroll
    for (int warp = 1; warp < chain_threads / 32; ++warp) sum += shared.of_warps[warp][i];
    cuda::store_in_cluster(&shared.of_blocks[share.block][i], 0, sum);
  }
  cuda::arrive_in_cluster();
}

/// Adds what all blocks gave.
template <class T>
__device__ void finish_weight_sums(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                                   const WeightSums& shared) {
  cuda::wait_for_cluster();
  if (share.block != 0) return;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < WeightSums::count; i += chain_threads) {
    float sum = shared.of_blocks[0][i];
#pragma unroll 4
    for (int block = 1; block < share.blocks; ++block) sum += shared.of_blocks[block][i];
    const int row = i / chain_width, col = i % chain_width;
    if (row == chain_width) {
      if (step.grad_bias != nullptr && col < step.out) step.grad_bias[col] = cuda::narrow<T>(sum);
    } else if (step.grad_weight.data != nullptr && row < step.out && col < step.in) {
      step.grad_weight.data[row * step.grad_weight.stride + col] = cuda::narrow<T>(sum);
    }
  }
}

template <class T>
__device__ void write_input_gradient(const LinearGradStep<T>& step, const cuda::ClusterShare& share,
                                     ChainFactor& factor) {
  fill_factor(step.weight, static_cast<const T*>(nullptr), step.out, step.in, true, factor);
  const ChainRows<const T> results(step.x, step.in);
  const ChainRows<T> grad_x(step.grad_x, step.in);
  multiply_rows(share, ChainRows<const T>(step.grad_y, step.out), factor,
                [&](std::int64_t row, float(&sums)[chain_width]) {
                  if (step.before_relu) {
                    float of_relu[chain_width];
                    results.load(row, of_relu);
#pragma unroll
                    for (int i = 0; i < chain_width; ++i) {
                      if (of_relu[i] <= 0) sums[i] = 0;
                    }
                  }
                  grad_x.store(sums, row);
                });
}

}  // namespace tessera::ops
