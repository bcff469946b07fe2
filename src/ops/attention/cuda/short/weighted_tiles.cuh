// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/step_tile.cuh"
#include "ops/attention/cuda/tall/window.cuh"

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
