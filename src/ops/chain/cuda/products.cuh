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

template <class T>
__device__ void fill_factor(const ProductStep<T>& step, ChainFactor& factor) {
  const int k = static_cast<int>(threadIdx.x) / chain_width;
  const int col = static_cast<int>(threadIdx.x) % chain_width;
  const auto stride = static_cast<int>(step.weight.stride);
  const int at = step.transposed ? col * stride + k : k * stride + col;
  const bool is_there = k < step.in && col < step.out;
  factor.values[k][col] = is_there ? cuda::widen(step.weight.data[at]) : 0.0f;
  if (k == 0) {
    factor.bias[col] = step.bias != nullptr && col < step.out ? cuda::widen(step.bias[col]) : 0.0f;
  }
  __syncthreads();
}

/// Adds the columns of what it stores to `totals`.
template <class T>
__device__ void multiply_rows(const ProductStep<T>& step, const ChainShare& share,
                              ChainFactor& factor, ChainTotals& totals) {
  fill_factor(step, factor);
  const ChainRows<const T> x(step.x, step.in), gates(step.gates, step.out);
  const ChainRows<T> y(step.y, step.out);
  const bool has_gates = step.gates.data != nullptr;
  struct Fetched {
    float values[chain_lanes][4], gate[4];
  };
  const auto fetch = [&](int row) {
    Fetched fetched{};
#pragma unroll
    for (int four = 0; four < chain_lanes; ++four) x.load(row, 4 * four, fetched.values[four]);
    if (has_gates) gates.load(row, share.first_col, fetched.gate);
    return fetched;
  };
  share.each_row(fetch, [&](int row, const Fetched& fetched) {
    const float4 bias = *reinterpret_cast<const float4*>(&factor.bias[share.first_col]);
    float sums[4] = {};
#pragma unroll
    for (int k = 0; k < chain_width; ++k) {
      const float4 of_k = *reinterpret_cast<const float4*>(&factor.values[k][share.first_col]);
      const float value = fetched.values[k / 4][k % 4];
      sums[0] = fmaf(value, of_k.x, sums[0]);
      sums[1] = fmaf(value, of_k.y, sums[1]);
      sums[2] = fmaf(value, of_k.z, sums[2]);
      sums[3] = fmaf(value, of_k.w, sums[3]);
    }
    sums[0] += bias.x;
    sums[1] += bias.y;
    sums[2] += bias.z;
    sums[3] += bias.w;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (has_gates && fetched.gate[i] <= 0) sums[i] = 0;
    }
    y.store(sums, row, share.first_col);
    totals.add(0, sums);
  });
}

/// What the warps of a block found of a weight's gradient; that of the bias lies behind it.
struct WeightSums {
  float of_warps[chain_threads / 32][weight_sums];
};

/// The gradient of a weight over the rows of a block: half a warp has a row, a lane four by four of
/// the results. Leaves the sums until the end.
template <class T>
__device__ void add_weight_gradient(const WeightStep<T>& step, const ChainShare& share,
                                    WeightSums& shared, double* left) {
  constexpr int ahead = 4;
  constexpr int team = chain_width * chain_width / 16;
  constexpr int step_rows = chain_threads / team;
  const int thread = static_cast<int>(threadIdx.x);
  const int first_out = thread % team / 4 * 4, first_in = thread % 4 * 4;
  const ChainRows<const T> of_x(step.x, step.in), of_y(step.grad_y, step.out);
  float sums[4][4] = {};
  float of_bias[4] = {};
#pragma unroll 1
  for (int first = share.begin + thread / team; first < share.end; first += ahead * step_rows) {
    float x[ahead][4] = {}, y[ahead][4] = {};
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int row = first + i * step_rows;
      if (row >= share.end) break;
      of_x.load(row, first_in, x[i]);
      of_y.load(row, first_out, y[i]);
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
#pragma unroll 1
  for (int i = thread; i < weight_sums; i += chain_threads) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < chain_threads / 32; ++warp) sum += shared.of_warps[warp][i];
    leave_sum(left, i, static_cast<double>(sum));
  }
}

}  // namespace tessera::ops
