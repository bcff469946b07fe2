// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/packed/factors.cuh"
#include "ops/attention/cuda/packed/fp16_units.cuh"
#include "ops/attention/cuda/tall/results.cuh"

namespace tessera::ops {

/// What a warp sums of 16 rows and `heads` heads: weights in units of 2^-15 of their bases, and
/// features times these and `fp16_unit_scale`.
template <int width, int heads>
class PackedSums {
 public:
  static constexpr int head_units = width / 8;
  using Rows = TileRows<width * heads>;

  /// Before another tile of a piece: bases follow c.
  __device__ void rise(const PackedStage<heads>& before, const PackedStage<heads>& stage,
                       RowTerms<heads>& rows, float slope) {
    bool rises = false;
#pragma unroll
    for (int h = 0; h < heads; ++h) rises = rises || stage.c[h] != before.c[h];
    if (!rises) return;
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const int h = i / 2;
      const int row = i % 2;
      const float l = rows.term(h, row);
      const float rise =
          RowFactors16::base(l, before.c[h], slope) - RowFactors16::base(l, stage.c[h], slope);
      // A row without edges stays 0 though its term be not a number.
      const float factor = power_of_2(fminf(rise, 0.0f));
#pragma unroll
      for (int k = 0; k < lane_heads; ++k) {
        if (RowTerms<heads>::head_of_lane(k) == h) weights_[2 * row + k] *= factor;
      }
#pragma unroll
      for (int unit = 0; unit < head_units; ++unit) {
        features_[h][unit][2 * row] *= factor;
        features_[h][unit][2 * row + 1] *= factor;
      }
    }
    rows.set_factors(stage.c, slope);
  }

  /// A tile. The sums of weights are products with ones: each head has its columns of the result.
  __device__ void add(const PackedStage<heads>& stage, const RowTerms<heads>& rows,
                      std::uint32_t values, const TilePattern& pattern, int num_steps) {
    const int lane = static_cast<int>(threadIdx.x % 32);
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
          rows.factors_of(h).weights(operand, stage.factors[h][step][lane % 4], masks);
          const std::uint32_t one = lane / 4 * heads / 8 == h ? 0x3c003c00u : 0u;
          const std::uint32_t ones[2] = {one, one};
          cuda::multiply_16x8<__half>(weights_, operand, ones);
        }
        const std::uint32_t b[2] = {blocks[unit % 2 * 2], blocks[unit % 2 * 2 + 1]};
        cuda::multiply_16x8<__half>(features_[h][unit % head_units], operand, b);
      }
    }
  }

  /// After tile `last`, where the window is whole: its rows of the output. Only a row without edges
  /// has a sum of 0.
  template <class T>
  __device__ void store(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                        const PackedStage<heads>& last, const RowTerms<heads>& rows) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int first_head = static_cast<int>(blockIdx.y) * heads;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * row;
      const std::int64_t vertex = std::int64_t{piece.first_row} + place;
      const bool exists = place < piece.num_rows;
      float reciprocals[lane_heads];
#pragma unroll
      for (int k = 0; k < lane_heads; ++k) {
        const int h = RowTerms<heads>::head_of_lane(k);
        const float total = weights_[2 * row + k];
        reciprocals[k] = total == 0 ? 0.0f : 1 / (total * fp16_unit_scale);
        if (launch.log_sum != nullptr && exists && lane % 4 == RowTerms<heads>::lane_of_head(h) &&
            first_head + h < launch.heads) {
          const float base = RowFactors16::base(rows.term(h, row), last.c[h], launch.slope);
          launch.log_sum[vertex * launch.log_sum_stride + first_head + h] =
              total == 0 ? -cuda::infinity : (base - packed_scale + log2f(total)) * ln_of_2;
        }
      }
      T* const to = static_cast<T*>(launch.output) + vertex * launch.output_stride +
                    first_head * width + lane % 4 * 2;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        const float factor = of_head(reciprocals, h);
        if (!exists || first_head + h >= launch.heads) continue;
#pragma unroll
        for (int unit = 0; unit < head_units; ++unit) {
          *reinterpret_cast<std::uint32_t*>(to + h * width + unit * 8) = packed<T>(
              features_[h][unit][2 * row] * factor, features_[h][unit][2 * row + 1] * factor);
        }
      }
    }
  }

  /// The same for a piece of a cut window, whose sums are relative to the bases.
  template <class T>
  __device__ void store_piece(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                              const PackedStage<heads>& last, const RowTerms<heads>& rows) const {
    const WindowResults<T, width, width * heads> results(launch);
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const int h = i / 2;
      const int row = i % 2;
      float pairs[head_units][2];
#pragma unroll
      for (int unit = 0; unit < head_units; ++unit) {
        pairs[unit][0] = features_[h][unit][2 * row] * (weight_unit / fp16_unit_scale);
        pairs[unit][1] = features_[h][unit][2 * row + 1] * (weight_unit / fp16_unit_scale);
      }
      const float totals[2] = {weights_[2 * row], weights_[2 * row + 1]};
      const float total = of_head(totals, h);
      const float base = RowFactors16::base(rows.term(h, row), last.c[h], launch.slope);
      // The largest base of a row's pieces counts: one without edges must not take part.
      results.store(piece, static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * row, h * width,
                    pairs, total == 0 ? lowest_base : base, total * weight_unit);
    }
    results.finish(piece);
  }

 private:
  static constexpr float weight_unit = 0x1p-15f;
  static constexpr int lane_heads = RowTerms<heads>::lane_heads;

  /// What the lane of the row that looks after a head has of it.
  template <int count>
  __device__ static float of_head(const float (&of_lane)[count], int h) {
    const int row = static_cast<int>(threadIdx.x % 32) & ~3;
    return __shfl_sync(~0u, of_lane[h % lane_heads], row + RowTerms<heads>::lane_of_head(h));
  }

  float features_[heads][head_units][4] = {};
  /// Per row the sums of the lane's heads, or twice that of its head.
  float weights_[4] = {};
};

}  // namespace tessera::ops
