// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/mma.cuh"
#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/tall/tile_rows.cuh"

/// What a warp holds of 16 rows of a window: as matrix instructions want it, lane 4 g + q has to do
/// with rows g and g + 8.
namespace tessera::ops {

template <class T>
__device__ std::uint32_t packed(float low, float high) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
}

/// Two numbers as halves of a word, and what they lost by that, likewise: together they are as good
/// as twice the digits.
template <class T>
struct PackedTwice {
  std::uint32_t high;
  std::uint32_t low;

  __device__ PackedTwice(float even, float odd) : high(packed<T>(even, odd)) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
      low =
          packed<T>(even - __uint_as_float(high << 16), odd - __uint_as_float(high & 0xffff0000u));
    } else {
      const float2 kept = __half22float2(reinterpret_cast<const __half2&>(high));
      low = packed<T>(even - kept.x, odd - kept.y);
    }
  }
};

/// The weights of 16 rows and the 16 columns of a step as operands.
template <class T>
struct StepWeights {
  std::uint32_t high[4];
  std::uint32_t low[4];

  __device__ void set(int place, float even, float odd) {
    const PackedTwice<T> pair(even, odd);
    high[place] = pair.high;
    low[place] = pair.low;
  }
};

/// How far below the largest weight of its row a weight may lie without losing digits, in powers of
/// two; and how far above the base the largest may lie before the base follows.
template <class T>
struct WeightRange;
template <>
struct WeightRange<__nv_bfloat16> {
  static constexpr float below = 40;
  static constexpr float slack = 8;
};
template <>
struct WeightRange<__half> {
  static constexpr float below = 10;
  static constexpr float slack = 2;
};

/// The pattern of one tile for this lane: bit 4 step + i, and 16 more for the odd column, says
/// whether row g + 8 (i % 2) uses column 16 step + 8 (i / 2) + 2q.
struct TilePattern {
  std::uint32_t word = 0;

  __device__ bool has(int step, int i, int odd) const {
    return (word >> (4 * step + i + 16 * odd) & 1) != 0;
  }
  /// Whether rows g and g + 8 have an edge in the tile: the same for the four lanes of a row.
  __device__ void find_rows(bool (&has_edges)[2]) const {
    unsigned rows = ((word & 0x55555555u) != 0 ? 1u : 0u) | ((word & 0xaaaaaaaau) != 0 ? 2u : 0u);
    rows |= __shfl_xor_sync(~0u, rows, 1);
    rows |= __shfl_xor_sync(~0u, rows, 2);
    has_edges[0] = (rows & 1) != 0;
    has_edges[1] = (rows & 2) != 0;
  }
};

/// The steps of a tile: all four, known when compiling, or fewer at the end of a window.
struct AllSteps {
  __device__ static constexpr bool has(int) { return true; }
};
struct SomeSteps {
  int count;
  __device__ bool has(int step) const { return step < count; }
};

/// The softmax and the weighted features of one head, for the two rows of a lane. Weights are
/// powers of two relative to `base`.
template <class T, int width>
struct HeadSums {
  float base[2] = {lowest_base, lowest_base};
  float sum[2] = {};  ///< of weights, over this lane's columns
  float features[width / 8][4] = {};

  /// The sum over all columns of the row.
  __device__ float total(int row) const {
    const float two = sum[row] + __shfl_xor_sync(~0u, sum[row], 1);
    return two + __shfl_xor_sync(~0u, two, 2);
  }
  __device__ bool must_rise(int row, float top) const {
    return top > base[row] + WeightRange<T>::slack;
  }
  /// Makes room for a score of `top` in row g + 8 `row`.
  __device__ void raise(int row, float top) {
    if (!must_rise(row, top)) return;
    const float factor = power_of_2(base[row] - top);
    base[row] = top;
    sum[row] *= factor;
#pragma unroll
    for (auto& group : features) {
      group[2 * row] *= factor;
      group[2 * row + 1] *= factor;
    }
  }

  /// Adds weights times rows of V, step by step; weights_of(step) computes those of a step.
  template <int features_of_tile, class Steps, class WeightsOf>
  __device__ void add(const Steps& steps, std::uint32_t values, int first_unit,
                      WeightsOf&& weights_of) {
    using Rows = TileRows<features_of_tile>;
    std::uint32_t blocks[4];
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      if (!steps.has(step)) break;
      const StepWeights<T> weights = weights_of(step);
      if constexpr (width == 8) {
        if (step % 2 == 0) Rows::load_column_of_two(blocks, values, step, first_unit);
        multiply(features[0], weights, blocks[step % 2 * 2], blocks[step % 2 * 2 + 1]);
      } else {
#pragma unroll
        for (int group = 0; group < width / 8; group += 2) {
          Rows::load_columns(blocks, values, step, first_unit + group);
          multiply(features[group], weights, blocks[0], blocks[1]);
          multiply(features[group + 1], weights, blocks[2], blocks[3]);
        }
      }
    }
  }

 private:
  __device__ static void multiply(float (&sums)[4], const StepWeights<T>& weights, std::uint32_t b0,
                                  std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<T>(sums, weights.low, b);
    cuda::multiply_16x8<T>(sums, weights.high, b);
  }
};

/// Scores of all cells of a tile, in powers of two: `cells[i]` are those of columns 8 i on, two of
/// row g, then two of row g + 8.
struct TileScores {
  float cells[8][4];

  /// Cells without an edge get -inf; bases make room for the largest score of each row.
  template <class T, int width>
  __device__ void settle(const TilePattern& pattern, HeadSums<T, width>& sums) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const bool exists = pattern.has(i / 2, i % 2 * 2 + k / 2, k % 2);
        cells[i][k] = exists ? cells[i][k] : -cuda::infinity;
        top[k / 2] = fmaxf(top[k / 2], cells[i][k]);
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 1));
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 2));
    }
    if (__any_sync(~0u, sums.must_rise(0, top[0]) || sums.must_rise(1, top[1])) != 0) {
      sums.raise(0, top[0]);
      sums.raise(1, top[1]);
    }
  }

  template <class T, int width>
  __device__ StepWeights<T> weights(int step, HeadSums<T, width>& sums) const {
    StepWeights<T> weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int row = place % 2;
      const float* const pair = cells[2 * step + place / 2] + 2 * row;
      const float even = power_of_2(pair[0] - sums.base[row]);
      const float odd = power_of_2(pair[1] - sums.base[row]);
      sums.sum[row] += even + odd;
      weights.set(place, even, odd);
    }
    return weights;
  }
};

}  // namespace tessera::ops
