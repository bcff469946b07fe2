// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/chain/cuda/sums.cuh"

/// The products of a chain, in fp32 whatever is stored.
namespace tessera::ops {

/// The right factor of a product of rows, inner size by columns, and what is added to its columns;
/// filled up with 0.
struct ChainFactor {
  alignas(16) float values[chain_width][chain_width];
  alignas(16) float bias[chain_width];
};

static_assert(chain_threads == chain_width * chain_width);

/// What a thread has of a factor, and of what is added to it, in flight.
template <class T>
struct FetchedFactor {
  T value, bias;
};

/// Reads a factor of the products of a chain, which no step writes: a thread has one number.
template <class T>
__device__ FetchedFactor<T> fetch_factor(const ChainLaunch<T>& launch, int number) {
  FetchedFactor<T> fetched{};
  if (number >= launch.factors) return fetched;
  const int k = static_cast<int>(threadIdx.x) / chain_width;
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  const ProductStep<T>& step = launch.steps[launch.product_of_factor[number]].product;
  const int in = launch.matrix[step.x].cols, out = launch.matrix[step.y].cols;
  const auto stride = static_cast<int>(step.weight.stride);
  const int at = step.transposed ? col * stride + k : k * stride + col;
  if (k < in && col < out) fetched.value = step.weight.data[at];
  if (k == 0 && step.bias != nullptr && col < out) fetched.bias = step.bias[col];
  return fetched;
}
template <class T>
__device__ void keep_factor(const ChainLaunch<T>& launch, int number,
                            const FetchedFactor<T>& fetched, ChainFactor* factors) {
  if (number >= launch.factors) return;
  const int k = static_cast<int>(threadIdx.x) / chain_width;
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  factors[number].values[k][col] = cuda::widen(fetched.value);
  if (k == 0) factors[number].bias[col] = cuda::widen(fetched.bias);
}

/// Adds the columns of what it stores to `totals`.
template <class T>
__device__ void multiply_rows(const ProductStep<T>& step, const ChainBlock<T>& block,
                              const ChainFactor* factors, ChainTotals& totals) {
  const ChainFactor& factor = factors[step.factor];
  const int first_col = block.first_col();
  const bool has_gates = step.gates != no_matrix;
  const ChainRows<T> x = block.matrix(step.x), y = block.matrix(step.y);
  const ChainRows<T> gates = block.matrix(has_gates ? step.gates : step.y);
  const float4 bias = *reinterpret_cast<const float4*>(&factor.bias[first_col]);
  float4 columns[chain_width];
#pragma unroll
  for (int k = 0; k < chain_width; ++k) {
    columns[k] = *reinterpret_cast<const float4*>(&factor.values[k][first_col]);
  }
  float column_sums[4] = {};
  block.each_row([&](int row) {
    float sums[4] = {};
#pragma unroll
    for (int four = 0; four < chain_lanes; ++four) {
      const FourOfRow part = x.load(row, 4 * four);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4 column = columns[4 * four + i];
        sums[0] = fmaf(part.values[i], column.x, sums[0]);
        sums[1] = fmaf(part.values[i], column.y, sums[1]);
        sums[2] = fmaf(part.values[i], column.z, sums[2]);
        sums[3] = fmaf(part.values[i], column.w, sums[3]);
      }
    }
    sums[0] += bias.x;
    sums[1] += bias.y;
    sums[2] += bias.z;
    sums[3] += bias.w;
    if (has_gates) {
      const FourOfRow gate = gates.load(row, first_col);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (gate.values[i] <= 0) sums[i] = 0;
      }
    }
    y.store(sums, row, first_col);
#pragma unroll
    for (int i = 0; i < 4; ++i) column_sums[i] += sums[i];
  });
#pragma unroll
  for (int i = 0; i < 4; ++i) totals.values[i] = static_cast<double>(column_sums[i]);
}

/// What the warps of a block found of a weight's gradient; that of the bias lies behind it.
struct WeightSums {
  float of_warps[chain_threads / 32][weight_sums];
};

/// The gradient of a weight over the rows of a block: half a warp has a row, a lane four by four of
/// the results. Leaves the sums until the end.
template <class T>
__device__ void add_weight_gradient(const WeightStep<T>& step, const ChainBlock<T>& block,
                                    WeightSums& shared, double* left) {
  constexpr int team = chain_width * chain_width / 16;
  constexpr int step_rows = chain_threads / team;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_out = thread % team / 4 * 4, first_in = thread % 4 * 4;
  const ChainRows<T> of_x = block.matrix(step.x), of_y = block.matrix(step.grad_y);
  float sums[4][4] = {};
  float of_bias[4] = {};
#pragma unroll 2
  for (int row = thread / team; row < block.rows(); row += step_rows) {
    const FourOfRow x = of_x.load(row, first_in), y = of_y.load(row, first_out);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      of_bias[j] += y.values[j];
#pragma unroll
      for (int k = 0; k < 4; ++k) sums[j][k] = fmaf(y.values[j], x.values[k], sums[j][k]);
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
#pragma unroll 1
  for (int i = thread; i < weight_sums; i += chain_threads) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < chain_threads / 32; ++warp) sum += shared.of_warps[warp][i];
    leave_sum(left, i, static_cast<double>(sum));
  }
}

}  // namespace tessera::ops
