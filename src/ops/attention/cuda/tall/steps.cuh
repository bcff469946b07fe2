// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/results.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// What a warp does with the sums of its 16 rows, head by head.
namespace tessera::ops {

/// Step by step, all heads of a step together. The steps are a loop, not copies of its body: the
/// instructions of all of them would not fit the cache that they are fetched from.
/// `weights_of(head, step, cells)` are the operands.
template <class Rows, class T, int width, int heads, class WeightsOf>
__device__ void add_steps(HeadSums<T, width> (&sums)[heads], std::uint32_t values,
                          const TilePattern& pattern, int num_steps, WeightsOf&& weights_of) {
#pragma unroll 1
  for (int step = 0; step < num_steps; ++step) {
    const StepPattern cells(pattern, step);
    if (!cells.has_edges()) continue;
    std::uint32_t blocks[4];
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const StepWeights<T> weights = weights_of(h, step, cells);
      if constexpr (width == 8) {
        if (h % 2 == 0) Rows::load_columns(blocks, values, step, h);
        sums[h].multiply(0, weights, blocks[h % 2 * 2], blocks[h % 2 * 2 + 1]);
      } else {
        sums[h].template add_wide<Rows>(weights, values, step, h * (width / 8));
      }
    }
  }
}

/// First the largest score of each row, then weights that take an exponential each.
template <class Rows, class Form, class Stage, class T, int width, int heads>
__device__ void add_exponentials(HeadSums<T, width> (&sums)[heads], const Form& form,
                                 const Stage& stage, std::uint32_t values,
                                 const TilePattern& pattern, int num_steps) {
#pragma unroll
  for (int h = 0; h < heads; ++h) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      form.find_top(stage, h, step, StepPattern(pattern, step), top);
    }
    sums[h].make_room(top);
  }
  add_steps<Rows>(sums, values, pattern, num_steps, [&](int h, int step, const StepPattern& cells) {
    return form.exponentials(stage, h, step, cells, sums[h]);
  });
}

/// What became of a piece goes where it belongs, as `Output`.
template <class Output, int features, class T, int width, int heads>
__device__ void finish_piece(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                             const HeadSums<T, width> (&sums)[heads]) {
  const WindowResults<Output, width, features> results(launch);
  const int first =
      static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(threadIdx.x % 32) / 4;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const HeadSums<T, width>& head = sums[h];
      float pairs[width / 8][2];
#pragma unroll
      for (int group = 0; group < width / 8; ++group) {
        pairs[group][0] = head.features[group][2 * row];
        pairs[group][1] = head.features[group][2 * row + 1];
      }
      results.store(piece, first + 8 * row, h * width, pairs, head.base[row], head.total(row));
    }
  }
  results.finish(piece);
}

}  // namespace tessera::ops
