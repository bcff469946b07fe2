// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include "ops/attention/cuda/tall/packed_units.cuh"
#include "ops/attention/cuda/tall/results.cuh"

namespace tessera::ops {

// Weights of GAT as products of fp16 factors, two cells at once. With l and r the terms of a row
// and a column in powers of two, a weight is, relative to 2^(slope l + 4),
//
//     max(2^((1 - slope) l) 2^(r - 4), 2^(slope r - 4))
//
// for a slope in [0, 1]: one factor per row and two per column, and no base that has to follow.
// While terms are of at most 9.9, all factors that the larger of both has, and that one, are
// normal numbers of fp16: three roundings of 2^-11 at most.

inline constexpr float packed_base = 4;
__device__ inline bool is_packed_term(float term) { return fabsf(term) <= 9.9f; }

/// Beside the rows of V: what columns bring to weights.
template <int heads>
struct PackedStage {
  struct alignas(16) Factors {
    std::uint32_t own[2], sloped[2];
  };
  Factors factors[heads][lane_places];
  WarpFlags out_of_range;

  /// The terms of two neighbouring columns, the first of them even; returns whether they are within
  /// the range.
  __device__ bool put(int h, int column, float even, float odd, float slope) {
    const LaneColumns place(column);
    Factors& to = factors[h][place.at];
    to.own[place.word] =
        packed<__half>(power_of_2(even - packed_base), power_of_2(odd - packed_base));
    to.sloped[place.word] = packed<__half>(power_of_2(fmaf(slope, even, -packed_base)),
                                           power_of_2(fmaf(slope, odd, -packed_base)));
    return is_packed_term(even) && is_packed_term(odd);
  }
};

/// The terms of the rows of a window in powers of two, and their factors, each twice in a word.
/// Registers are dear.
template <int heads>
struct PackedRows {
  OwnWords<heads> factors;
  float terms[tall_window_height][heads];
  uint2 ones[heads][8];  ///< per head: 1 in its columns of an operand, 0 in others

  /// By the first threads of a block.
  __device__ void put_ones() {
    if (threadIdx.x >= heads * 8) return;
    const int column = static_cast<int>(threadIdx.x % 8);
    const int h = static_cast<int>(threadIdx.x / 8);
    const std::uint32_t one = column * heads / 8 == h ? 0x3c003c00u : 0u;
    ones[h][column] = make_uint2(one, one);
  }

  /// Heads that a lane of a row looks after, with others where there are less than four; and the
  /// i-th of them.
  static constexpr int lane_heads = heads > 4 ? heads / 4 : 1;
  __device__ static int head_of_lane(int i) {
    const int q = static_cast<int>(threadIdx.x % 4);
    return heads > 4 ? q * lane_heads + i : q * heads / 4;
  }
  /// The lane of its row that looks after a head.
  __device__ static constexpr int lane_of_head(int h) {
    return heads > 4 ? h / lane_heads : h * (4 / heads);
  }

  /// What the weights of row g + 8 `row` of this lane's warp are relative to.
  __device__ float base(int h, int row, float slope) const {
    return fmaf(slope, terms[own_place(row)][h], packed_base);
  }

  /// Lanes of a row take their heads; returns whether their terms are within the range.
  template <class T>
  __device__ bool load(const WindowsLaunch& launch, const tiles::Piece& piece, int first_head) {
    bool serve = true;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * lane_heads; ++i) {
      const int h = head_of_lane(i / 2);
      const int place = own_place(i % 2);
      const T* const from = static_cast<const T*>(launch.target) +
                            (std::int64_t{piece.first_row} + place) * launch.target_stride;
      const bool wanted = place < piece.num_rows && first_head + h < launch.heads;
      const float term = wanted ? cuda::widen(__ldg(from + first_head + h)) * log2_of_e : 0.0f;
      const __half2 factor = __float2half2_rn(power_of_2((1 - launch.slope) * term));
      factors.word(h, i % 2) = reinterpret_cast<const std::uint32_t&>(factor);
      terms[place][h] = term;
      serve = serve && is_packed_term(term);
    }
    __syncwarp();
    return serve;
  }
};

/// The weights of 16 rows and 16 columns as an operand, by the factors of rows g and g + 8; cells
/// without an edge are 0.
__device__ inline void find_packed_weights(std::uint32_t (&a)[4], const std::uint32_t (&rows)[2],
                                           const uint4& columns, const std::uint32_t (&edges)[4]) {
  const auto pair = [](const std::uint32_t& word) {
    return reinterpret_cast<const __half2&>(word);
  };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half2 larger = __hmax2(__hmul2(pair(rows[i % 2]), pair(i < 2 ? columns.x : columns.y)),
                                   pair(i < 2 ? columns.z : columns.w));
    a[i] = reinterpret_cast<const std::uint32_t&>(larger) & edges[i];
  }
}

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
          if (h % 2 == 0) pair = rows.factors.pair(h / 2);
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
  __device__ void store(const WindowsLaunch& launch, const tiles::Piece& piece,
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
  __device__ void store_piece(const WindowsLaunch& launch, const tiles::Piece& piece,
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
