// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/windows/edge_weights.cuh"

/// Weights of GAT, whose scores are leaky_relu(l[i] + r[j]), by an exponential for each cell: for
/// tiles whose terms lie so far apart that products of factors would lose digits.
namespace tessera::ops {

template <class T, int width, int heads>
class GatExponentials {
 public:
  /// With the terms of the two rows of this lane, in powers of two.
  __device__ GatExponentials(float slope, const float (&terms)[heads][2]) : slope_(slope) {
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) l_[i / 2][i % 2] = terms[i / 2][i % 2];
  }

  /// Adds a tile whose rows lie at `values`; of its `columns` the r are read. First the largest
  /// score of each row is found, then all heads of a step are added together. The steps are a loop,
  /// not copies of its body: the instructions of all of them would not fit the cache that they are
  /// fetched from.
  template <class Rows, class Columns>
  __device__ void add(HeadSums<T, width> (&sums)[heads], const Columns& columns,
                      std::uint32_t values, const TilePattern& pattern, int num_steps) const {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll 1
      for (int step = 0; step < num_steps; ++step) {
        find_top(columns.r[h], step, StepPattern(pattern, step), h, top);
      }
      sums[h].make_room(top);
    }
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      const StepPattern cells(pattern, step);
      if (!cells.has_edges()) continue;
      std::uint32_t blocks[4];
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        const StepWeights<T> weights = find_weights(columns.r[h], step, cells, h, sums[h]);
        if constexpr (width == 8) {
          if (h % 2 == 0) Rows::load_columns(blocks, values, step, h);
          sums[h].multiply(0, weights, blocks[h % 2 * 2], blocks[h % 2 * 2 + 1]);
        } else {
          sums[h].template add_wide<Rows>(weights, values, step, h * (width / 8));
        }
      }
    }
  }

 private:
  /// The largest scores of one head that this lane finds in a step.
  __device__ void find_top(const float* r, int step, const StepPattern& cells, int h,
                           float (&top)[2]) const {
    each_score(r, step, h, [&](int place, float even, float odd) {
      float& of_row = top[place % 2];
      of_row = fmaxf(of_row, cells.has(place, 0) ? even : -cuda::infinity);
      of_row = fmaxf(of_row, cells.has(place, 1) ? odd : -cuda::infinity);
    });
  }
  __device__ StepWeights<T> find_weights(const float* r, int step, const StepPattern& cells, int h,
                                         HeadSums<T, width>& sums) const {
    StepWeights<T> weights;
    each_score(r, step, h, [&](int place, float even, float odd) {
      const int row = place % 2;
      even = cells.masked(power_of_2(even - sums.base[row]), place, 0);
      odd = cells.masked(power_of_2(odd - sums.base[row]), place, 1);
      sums.sum[row] += even + odd;
      weights.set(place, even, odd);
    });
    return weights;
  }

  __device__ float leaky(float x) const { return x > 0 ? x : slope_ * x; }

  /// Calls body(place, score of the even column, score of the odd one).
  template <class Body>
  __device__ void each_score(const float* of_columns, int step, int h, Body&& body) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = step * 16 + half * 8 + static_cast<int>(threadIdx.x % 4) * 2;
      const float2 r = *reinterpret_cast<const float2*>(of_columns + column);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        body(2 * half + row, leaky(l_[h][row] + r.x), leaky(l_[h][row] + r.y));
      }
    }
  }

  float slope_;
  float l_[heads][2];
};

}  // namespace tessera::ops
