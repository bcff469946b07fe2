// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/packed/factors.cuh"
#include "ops/attention/cuda/packed/fp16_units.cuh"
#include "ops/attention/cuda/tall/results.cuh"

namespace tessera::ops {

/// What a warp sums of 16 rows and `heads` heads: weights relative to their bases, and features
/// times these and `fp16_unit_scale`.
template <int width, int heads>
class PackedSums {
 public:
  static constexpr int head_units = width / 8;
  using Rows = TileRows<width * heads>;

  /// A tile. The sums of weights are products with ones: each head has its columns of the result.
  __device__ void add(const PackedStage<heads>& stage, const PackedRows<heads>& rows,
                      std::uint32_t values, const TilePattern& pattern, int num_steps) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      if (!StepPattern(pattern, step).has_edges()) continue;
      std::uint32_t edges[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) edges[i] = pattern.mask(4 * step + i);
      std::uint32_t blocks[4];
      std::uint32_t operand[4];
      uint4 pair;
#pragma unroll
      for (int unit = 0; unit < heads * head_units; ++unit) {
        const int h = unit / head_units;
        if (unit % 2 == 0) Rows::load_columns(blocks, values, step, unit);
        if (unit % head_units == 0) {
          if (h % 2 == 0) pair = rows.pair(h / 2);
          const std::uint32_t factors[2] = {h % 2 == 0 ? pair.x : pair.z,
                                            h % 2 == 0 ? pair.y : pair.w};
          find_packed_weights(
              operand, factors,
              *reinterpret_cast<const uint4*>(&stage.factors[h][step * 4 + lane % 4]), edges);
          const uint2 both = rows.ones[h][lane / 4];
          const std::uint32_t ones[2] = {both.x, both.y};
          cuda::multiply_16x8<__half>(weights_, operand, ones);
        }
        const std::uint32_t b[2] = {blocks[unit % 2 * 2], blocks[unit % 2 * 2 + 1]};
        cuda::multiply_16x8<__half>(features_[h][unit % head_units], operand, b);
      }
    }
  }

  /// Where the window is whole: its rows of the output. Only a row without edges has a sum of 0.
  template <class T>
  __device__ void store(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                        const PackedRows<heads>& rows) const {
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
        const int h = PackedRows<heads>::head_of_lane(k);
        const float total = weights_[2 * row + k];
        reciprocals[k] = total == 0 ? 0.0f : 1 / (total * fp16_unit_scale);
        if (launch.log_sum != nullptr && exists && lane % 4 == PackedRows<heads>::lane_of_head(h) &&
            first_head + h < launch.heads) {
          launch.log_sum[vertex * launch.log_sum_stride + first_head + h] =
              total == 0 ? -cuda::infinity
                         : (rows.base(h, row, launch.slope) + log2f(total)) * ln_of_2;
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
                              const PackedRows<heads>& rows) const {
    const WindowResults<T, width, width * heads> results(launch);
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const int h = i / 2;
      const int row = i % 2;
      float pairs[head_units][2];
#pragma unroll
      for (int unit = 0; unit < head_units; ++unit) {
        pairs[unit][0] = features_[h][unit][2 * row] * (1 / fp16_unit_scale);
        pairs[unit][1] = features_[h][unit][2 * row + 1] * (1 / fp16_unit_scale);
      }
      const float totals[2] = {weights_[2 * row], weights_[2 * row + 1]};
      const float total = of_head(totals, h);
      // The largest base of a row's pieces counts: one without edges must not take part.
      results.store(piece, static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * row, h * width,
                    pairs, total == 0 ? lowest_base : rows.base(h, row, launch.slope), total);
    }
    results.finish(piece);
  }

 private:
  static constexpr int lane_heads = PackedRows<heads>::lane_heads;

  /// What the lane of the row that looks after a head has of it.
  template <int count>
  __device__ static float of_head(const float (&of_lane)[count], int h) {
    const int row = static_cast<int>(threadIdx.x % 32) & ~3;
    return __shfl_sync(~0u, of_lane[h % lane_heads], row + PackedRows<heads>::lane_of_head(h));
  }

  float features_[heads][head_units][4] = {};
  /// Per row the sums of the lane's heads, or twice that of its head.
  float weights_[4] = {};
};

}  // namespace tessera::ops
