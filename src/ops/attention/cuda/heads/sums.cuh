// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/mma.cuh"
#include "ops/attention/cuda/heads/factors.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// What a warp sums up of 32 rows of a window: two blocks of 16, of which lane 4 g + q has to do
/// with rows g and g + 8.
namespace tessera::ops {

/// Which cells of 16 rows and the 16 columns of a step have an edge and a plus, and which a minus,
/// as operands: `sign_unit` or 0.
struct SignCells {
  std::uint32_t plus[4];
  std::uint32_t minus[4];

  /// The number that marks a cell: one bit of the exponent.
  static constexpr float unit = 2;
  static constexpr std::uint32_t unit_bits = 0x40004000u;

  /// `bits`: those of the step, from bit 0 on (window.cuh); 0 - l of the rows; r of columns 2q,
  /// 2q + 1 and of those 8 further on. What is 0 has a minus.
  __device__ SignCells(std::uint32_t bits, const float (&minus_l)[2], const float2 (&r)[2]) {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const float even = minus_l[place % 2] - r[place / 2].x;
      const float odd = minus_l[place % 2] - r[place / 2].y;
      const std::uint32_t positive = signs_over_halves(even, odd);
      const std::uint32_t edges = bits << (14 - place);
      plus[place] = edges & positive & unit_bits;
      minus[place] = edges & ~positive & unit_bits;
    }
  }
};

/// The sums of one head and 16 rows: of `groups` groups of eight scaled features, and of the
/// factors themselves, whose parts stand in columns 0 to 2 and, for the other factor, 4 to 6.
template <int groups>
struct SignedSums {
  float plus[groups][4];
  float minus[groups][4];
  float plus_weights[4];
  float minus_weights[4];

  __device__ void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int group = 0; group < groups; ++group) plus[group][i] = minus[group][i] = 0;
      plus_weights[i] = minus_weights[i] = 0;
    }
  }

  /// The sums of one row, which are of one factor each until then.
  __device__ void scale_row(int row, float own, float sloped) {
#pragma unroll
    for (int i = 2 * row; i < 2 * row + 2; ++i) {
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        plus[group][i] *= own;
        minus[group][i] *= sloped;
      }
      plus_weights[i] *= own;
      minus_weights[i] *= sloped;
    }
  }

  __device__ void add_weights(const SignCells& cells, std::uint32_t b0, std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<__nv_bfloat16>(plus_weights, cells.plus, b);
    cuda::multiply_16x8<__nv_bfloat16>(minus_weights, cells.minus, b);
  }
  __device__ void add(int group, const SignCells& cells, const std::uint32_t (&own)[4],
                      const std::uint32_t (&sloped)[4]) {
    multiply(plus[group], cells.plus, own[0], own[1]);
    multiply(minus[group], cells.minus, sloped[0], sloped[1]);
    multiply(plus[group], cells.plus, own[2], own[3]);
    multiply(minus[group], cells.minus, sloped[2], sloped[3]);
  }
  /// Weights that are no factors, with rows that are not scaled: on one side.
  __device__ static void add_unscaled(float (&to)[4], const StepWeights<__nv_bfloat16>& weights,
                                      const std::uint32_t (&rows)[4]) {
    multiply(to, weights.low, rows[0], rows[1]);
    multiply(to, weights.high, rows[2], rows[3]);
    multiply(to, weights.high, rows[0], rows[1]);
  }
  __device__ static void add_unscaled_weights(float (&to)[4],
                                              const StepWeights<__nv_bfloat16>& weights,
                                              const std::uint32_t (&parts)[4]) {
    multiply(to, weights.low, parts[0], parts[1]);
    multiply(to, weights.high, parts[0], parts[1]);
  }

  /// The sums of the weights of a row on either side; all four lanes of the row get them.
  __device__ float plus_total(int row) const {
    const float sum = plus_weights[2 * row] + plus_weights[2 * row + 1];
    return over_lanes(threadIdx.x % 4 < 2 ? sum : 0.0f);
  }
  __device__ float minus_total(int row) const {
    const float sum = minus_weights[2 * row] + minus_weights[2 * row + 1];
    return over_lanes(threadIdx.x % 4 < 2 ? 0.0f : sum);
  }
  /// Over the four lanes of a row.
  __device__ static float over_lanes(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }
  /// Whether a row has an edge, where sums of weights are sums of factors: these are not 0.
  __device__ bool has_edges(int row) const {
    const bool holds_plus = threadIdx.x % 4 < 2;
    const float first = holds_plus ? plus_weights[2 * row] : minus_weights[2 * row];
    const float second = holds_plus ? plus_weights[2 * row + 1] : minus_weights[2 * row + 1];
    const bool own = !(first == 0 && second == 0);
    const unsigned mask = __ballot_sync(~0u, own);
    return (mask >> (threadIdx.x % 32 & ~3u) & 0xfu) != 0;
  }

 private:
  __device__ static void multiply(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<__nv_bfloat16>(sums, a, b);
  }
};

}  // namespace tessera::ops
