// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/results.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// What the forward passes over windows of 16 rows share, whatever their scores are and however
/// rows come: cells become weights of the rows of V.
namespace tessera::ops {

template <class T, int width>
class ShortSoftmax {
 public:
  __device__ void clear() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      base_[row] = lowest_base;
      sum_[row] = 0;
    }
    sums_.clear();
  }

  __device__ void finish(const tiles::Piece& piece) const {
    const ShortResults<T, width> results(launch_, piece);
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float total = sum_[row] + __shfl_xor_sync(~0u, sum_[row], 1);
      total += __shfl_xor_sync(~0u, total, 2);
      factors[row] =
          results.settle(WarpLane::group() + 8 * row, base_[row], total, WarpLane::quarter() == 0);
    }
    float of_sums[2][2];
    to_sums(factors, of_sums);
#pragma unroll
    for (int i = 0; i < FeatureSums<T, width>::chunks * 4; ++i) {
      const int chunk = i / 4;
      const int half = i / 2 % 2;
      const int odd = i % 2;
      float features[8];
      sums_.row(chunk, half, odd, features);
      results.store(8 * half + 2 * WarpLane::quarter() + odd, chunk * 64 + WarpLane::group() * 8,
                    features, of_sums[half][odd]);
    }
    results.finish();
  }

 protected:
  __device__ explicit ShortSoftmax(const TallAttentionLaunch& launch) : launch_(launch) {}

  /// Scores of a step, in powers of two, become weights, of which cells without an edge have none;
  /// bases make room for the largest score of each row.
  __device__ void settle(StepCells& cells, std::uint32_t bits) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& cell = cells.of[i][k];
        cell = StepCells::exists(bits, i, k) ? cell : -cuda::infinity;
        top[k / 2] = fmaxf(top[k / 2], cell);
      }
    }
    if (__any_sync(~0u, must_rise(0, top[0]) || must_rise(1, top[1])) != 0) raise(top);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& cell = cells.of[i][k];
        cell = power_of_2(cell - base_[k / 2]);
        sum_[k / 2] += cell;
      }
    }
  }

  const TallAttentionLaunch& launch_;
  FeatureSums<T, width> sums_;

 private:
  __device__ bool must_rise(int row, float top) const {
    return WeightBase<T>::must_rise(base_[row], top);
  }
  /// `top` of what this lane has of its rows.
  __device__ void raise(float (&top)[2]) {
#pragma unroll
    for (float& of_row : top) {
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 2));
    }
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float base = must_rise(row, top[row]) ? WeightBase<T>::under(top[row]) : base_[row];
      factors[row] = power_of_2(base_[row] - base);
      base_[row] = base;
      sum_[row] *= factors[row];
    }
    float of_sums[2][2];
    to_sums(factors, of_sums);
    sums_.scale(of_sums);
  }
  /// A number of each row from the lanes that have its cells to those that have its sums.
  __device__ static void to_sums(const float (&of_cells)[2], float (&of_sums)[2][2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        of_sums[half][odd] = __shfl_sync(~0u, of_cells[half], 4 * (2 * WarpLane::quarter() + odd));
      }
    }
  }

  float base_[2], sum_[2];  ///< of rows g and g + 8, the sums over this lane's columns
};

}  // namespace tessera::ops
