// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/step_tile.cuh"
#include "ops/windows/edge_weights.cuh"

namespace tessera::ops {

/// Sums of weighted rows, of rows g and g + 8 of a window: of every eight features two of either.
template <class T, int width>
struct RowSums {
  float features[width / 8][4] = {};

  __device__ void multiply(int group, const StepWeights<T>& weights, std::uint32_t b0,
                           std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<T>(features[group], weights.low, b);
    cuda::multiply_16x8<T>(features[group], weights.high, b);
  }
};

/// Cells of a step as operands.
template <class T>
__device__ StepWeights<T> operands_of(const StepCells& cells) {
  StepWeights<T> operands;
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    const float* const pair = cells.of[place / 2] + place % 2 * 2;
    operands.set(place, pair[0], pair[1]);
  }
  return operands;
}
/// The weights of scores in powers of two, relative to the bases of their rows.
template <class T, int width>
__device__ StepWeights<T> weights_of_scores(const StepCells& scores, HeadSums<T, width>& sums) {
  StepWeights<T> weights;
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    const int row = place % 2;
    const float* const pair = scores.of[place / 2] + 2 * row;
    const float even = power_of_2(pair[0] - sums.base[row]);
    const float odd = power_of_2(pair[1] - sums.base[row]);
    sums.sum[row] += even + odd;
    weights.set(place, even, odd);
  }
  return weights;
}

/// Adds the rows of a step, weighted, to the features of the 16 rows of a window.
template <template <class, int> class Sums, class T, int width>
__device__ void add_weighted(Sums<T, width>& sums, const StepWeights<T>& weights,
                             const StepTile<width>& rows) {
#pragma unroll
  for (int group = 0; group < width / 8; group += 2) {
    std::uint32_t blocks[4];
    rows.load_columns(blocks, group);
    sums.multiply(group, weights, blocks[0], blocks[1]);
    sums.multiply(group + 1, weights, blocks[2], blocks[3]);
  }
}

}  // namespace tessera::ops
