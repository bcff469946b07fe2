// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/packed/factors.cuh"
#include "ops/attention/cuda/packed/fp16_units.cuh"

namespace tessera::ops {

/// What a warp sums of 16 rows and `heads` heads: weights in units of 2^-15 of their bases, and
/// features times these and `fp16_unit_scale`.
template <int width, int heads>
class PackedSums {
 public:
  static constexpr int head_units = width / 8;
  using Rows = TileRows<width * heads>;

  /// Before the first tile of a piece, whose c are those of `stage`.
  __device__ void begin(const PackedStage<heads>& stage, const RowTerms<heads>& rows, float slope) {
#pragma unroll
    for (int h = 0; h < heads; ++h) set_factors(h, stage.c[h], rows, slope);
  }

  /// Before another tile: bases follow c.
  __device__ void rise(const PackedStage<heads>& before, const PackedStage<heads>& stage,
                       const RowTerms<heads>& rows, float slope) {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      if (stage.c[h] == before.c[h]) continue;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float l = rows.term(h, row);
        const float rise =
            RowFactors16::base(l, before.c[h], slope) - RowFactors16::base(l, stage.c[h], slope);
        // A row without edges stays 0 though its term be not a number.
        const float factor = power_of_2(fminf(rise, 0.0f));
        if (head_of_lane() == h) weights_[2 * row] *= factor;
#pragma unroll
        for (int unit = 0; unit < head_units; ++unit) {
          features_[h][unit][2 * row] *= factor;
          features_[h][unit][2 * row + 1] *= factor;
        }
      }
      set_factors(h, stage.c[h], rows, slope);
    }
  }

  /// A tile. The sums of weights are products with ones: each head has its columns of the result.
  __device__ void add(const PackedStage<heads>& stage, std::uint32_t values,
                      const TilePattern& pattern, int num_steps) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      const StepPattern cells(pattern, step);
      if (!cells.has_edges()) continue;
      std::uint32_t masks[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) masks[i] = (cells.word >> i & 0x00010001u) * 0xffffu;
      std::uint32_t blocks[4];
      std::uint32_t operand[4];
#pragma unroll
      for (int unit = 0; unit < heads * head_units; ++unit) {
        const int h = unit / head_units;
        if (unit % 2 == 0) Rows::load_columns(blocks, values, step, unit);
        if (unit % head_units == 0) {
          factors_[h].weights(operand, stage.factors[h][step][lane % 4], masks);
          const std::uint32_t one = lane / 4 * heads / 8 == h ? 0x3c003c00u : 0u;
          const std::uint32_t ones[2] = {one, one};
          cuda::multiply_16x8<__half>(weights_, operand, ones);
        }
        const std::uint32_t b[2] = {blocks[unit % 2 * 2], blocks[unit % 2 * 2 + 1]};
        cuda::multiply_16x8<__half>(features_[h][unit % head_units], operand, b);
      }
    }
  }

  /// After tile `last`: the same relative to the bases themselves.
  template <class T>
  __device__ void fold(HeadSums<T, width> (&sums)[heads], const PackedStage<heads>& last,
                       const RowTerms<heads>& rows, float slope) const {
    constexpr int lanes_per_head = 4 / heads;  // which have the same sums of weights
#pragma unroll
    for (int h = 0; h < heads; ++h) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        sums[h].base[row] = RowFactors16::base(rows.term(h, row), last.c[h], slope);
        sums[h].sum[row] = static_cast<int>(threadIdx.x) % 4 == h * lanes_per_head
                               ? weights_[2 * row] * unit
                               : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < 4 * head_units; ++i) {
        sums[h].features[i / 4][i % 4] = features_[h][i / 4][i % 4] * (unit / fp16_unit_scale);
      }
    }
  }

 private:
  static constexpr float unit = 0x1p-15f;

  __device__ static int head_of_lane() { return static_cast<int>(threadIdx.x) % 4 * heads / 4; }

  __device__ void set_factors(int h, float c, const RowTerms<heads>& rows, float slope) {
#pragma unroll
    for (int row = 0; row < 2; ++row) factors_[h].set(row, rows.term(h, row), c, slope);
  }

  float features_[heads][head_units][4] = {};
  float weights_[4] = {};  ///< of the lane's head
  RowFactors16 factors_[heads];
};

}  // namespace tessera::ops
