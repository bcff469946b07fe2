// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/mma.cuh"
#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/cuda/exponentials.cuh"
#include "ops/windows/number_pairs.cuh"
#include "ops/windows/tile_rows.cuh"

/// What a warp holds of 16 rows of a window: as matrix instructions want it, lane 4 g + q has to do
/// with rows g and g + 8.
namespace tessera::ops {

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

/// In powers of two: how far below the largest weight of its row a weight may lie without losing
/// digits; how far above the base the largest weight is put, and how much further it may come to
/// lie before the base follows. In fp16 small weights have few digits, so that the largest lie near
/// the largest number, 2^16.
template <class T>
struct WeightRange;
template <>
struct WeightRange<__nv_bfloat16> {
  static constexpr float below = 40;
  static constexpr float lift = 0;
  static constexpr float slack = 8;
};
template <>
struct WeightRange<__half> {
  static constexpr float below = 10;
  static constexpr float lift = 13;
  static constexpr float slack = 2;
};

/// Where the base of a row lies whose largest score is `top`. Differences of large scores are
/// exact where sums with them are not, and what is rounded up makes no weight larger.
template <class T>
struct WeightBase {
  __device__ static bool must_rise(float base, float top) {
    return top - base > WeightRange<T>::lift + WeightRange<T>::slack;
  }
  __device__ static float under(float top) { return __fadd_ru(top, -WeightRange<T>::lift); }
};

/// The pattern of one tile for this lane: bit 4 step + i, and 16 more for the odd column, says
/// whether row g + 8 (i % 2) uses column 16 step + 8 (i / 2) + 2q.
struct TilePattern {
  std::uint32_t word = 0;

  /// Whether rows g and g + 8 have an edge in the tile: the same for the four lanes of a row.
  __device__ void find_rows(bool (&has_edges)[2]) const {
    unsigned rows = ((word & 0x55555555u) != 0 ? 1u : 0u) | ((word & 0xaaaaaaaau) != 0 ? 2u : 0u);
    rows |= __shfl_xor_sync(~0u, rows, 1);
    rows |= __shfl_xor_sync(~0u, rows, 2);
    has_edges[0] = (rows & 1) != 0;
    has_edges[1] = (rows & 2) != 0;
  }

  /// All bits of either half of a register whose cell, the i-th of the tile, has an edge.
  __device__ std::uint32_t mask(int i) const {
    const std::uint32_t tops = word << (15 - i);
    std::uint32_t halves;
    // Repeats the highest bits of the second and the last byte, which CUDA's function does not.
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(halves) : "r"(tops));
    return halves;
  }
};

/// One step of a tile's pattern as masks, which serve all heads.
struct StepPattern {
  std::uint32_t word;

  __device__ StepPattern(const TilePattern& pattern, int step) : word(pattern.word >> (4 * step)) {}

  /// Whether a row of this warp has an edge in the step.
  __device__ bool has_edges() const { return __any_sync(~0u, (word & 0x000f000fu) != 0) != 0; }

  __device__ bool has(int i, int odd) const { return (word >> (i + 16 * odd) & 1) != 0; }
  __device__ float masked(float weight, int i, int odd) const {
    const auto top = static_cast<std::int32_t>(word << (31 - i - 16 * odd));
    return __uint_as_float(__float_as_uint(weight) & static_cast<std::uint32_t>(top >> 31));
  }
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
    return WeightBase<T>::must_rise(base[row], top);
  }
  /// Makes room for a score of `top` in row g + 8 `row`.
  __device__ void raise(int row, float top) {
    if (!must_rise(row, top)) return;
    const float risen = WeightBase<T>::under(top);
    const float factor = power_of_2(base[row] - risen);
    base[row] = risen;
    sum[row] *= factor;
#pragma unroll
    for (auto& group : features) {
      group[2 * row] *= factor;
      group[2 * row + 1] *= factor;
    }
  }

  /// Makes room for what the four lanes of each row have found, `top` of them.
  __device__ void make_room(float (&top)[2]) {
#pragma unroll
    for (float& of_row : top) {
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 2));
    }
    if (__any_sync(~0u, must_rise(0, top[0]) || must_rise(1, top[1])) == 0) return;
    raise(0, top[0]);
    raise(1, top[1]);
  }

  /// Adds the products of one step with all groups of eight features, of which there are several.
  template <class Rows>
  __device__ void add_wide(const StepWeights<T>& weights, std::uint32_t values, int step,
                           int first_unit) {
    std::uint32_t blocks[4];
#pragma unroll
    for (int group = 0; group < width / 8; group += 2) {
      Rows::load_columns(blocks, values, step, first_unit + group);
      multiply(group, weights, blocks[0], blocks[1]);
      multiply(group + 1, weights, blocks[2], blocks[3]);
    }
  }

  __device__ void multiply(int group, const StepWeights<T>& weights, std::uint32_t b0,
                           std::uint32_t b1) {
    const std::uint32_t b[2] = {b0, b1};
    cuda::multiply_16x8<T>(features[group], weights.low, b);
    cuda::multiply_16x8<T>(features[group], weights.high, b);
  }
};

/// Scores of two steps, in powers of two: `cells[i]` are those of columns 8 i on, two of row g,
/// then two of row g + 8.
struct PairScores {
  float cells[4][4];

  /// Cells without an edge get -inf; bases make room for the largest score of each row.
  template <class T, int width>
  __device__ void settle(const StepPattern (&steps)[2], HeadSums<T, width>& sums) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const bool exists = steps[i / 2].has(i % 2 * 2 + k / 2, k % 2);
        cells[i][k] = exists ? cells[i][k] : -cuda::infinity;
        top[k / 2] = fmaxf(top[k / 2], cells[i][k]);
      }
    }
    sums.make_room(top);
  }

  /// Of a step.
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
