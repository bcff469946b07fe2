// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/step_tile.cuh"
#include "ops/attention/cuda/tall/window.cuh"

namespace tessera::ops {

/// Adds the rows of a step, weighted, to the features of the 16 rows of a window.
template <class T, int width>
__device__ void add_weighted(HeadSums<T, width>& sums, const StepWeights<T>& weights,
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
