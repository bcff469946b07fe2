// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat.cuh"

/// Weights of GAT as products of fp16 factors, two cells at once. With l and r the terms of a row
/// and a column in powers of two, c at least the largest r of the window so far, a = l + c, and
/// b = max(a, slope a) the base of the row,
///
///     2^15 2^(leaky_relu(l + r) - b)
///         = max(2^(a - b) 2^(r - c + 15), 2^(slope a - b + 15) 2^(slope (r - c)))
///
/// for a slope in [0, 1]. While r - c >= -29 and slope (r - c) >= -14, all factors that the larger
/// product has, and that product, are normal numbers of fp16: three roundings of 2^-11 at most.
namespace tessera::ops {

inline constexpr float packed_scale = 15;          ///< of weights, as a power of two
inline constexpr float packed_range = -29;         ///< of r - c
inline constexpr float packed_sloped_range = -14;  ///< of slope (r - c)
/// Of c over a piece. The sums of all rows follow it, also of those without an edge near it, and
/// must not come near the smallest numbers of fp32.
inline constexpr float packed_rise = 100;

/// Beside the rows of V: what columns bring to weights.
template <int heads>
struct PackedStage {
  static constexpr int steps = tiles::tile_columns / tiles::step_columns;
  /// Of two times two columns, as a lane meets them: own factors, then those with the slope.
  uint4 factors[heads][steps][4];
  float r[heads][tiles::tile_columns];
  float c[heads];
  int out_of_range[heads];  ///< != 0 where a term, or the rise of c, is out of range

  __device__ bool fails() const {
    int any = 0;
#pragma unroll
    for (const int fail : out_of_range) any |= fail;
    return any != 0;
  }

  /// Where the own factor of a column lies; the one with the slope is four further on.
  __device__ __half* factor_of(int h, int column) {
    const int in_step = column % tiles::step_columns;
    return reinterpret_cast<__half*>(&factors[h][column / tiles::step_columns][in_step % 8 / 2]) +
           in_step / 8 * 2 + in_step % 2;
  }
};

/// What a warp knows of the head whose columns it brings.
class ColumnFactors16 {
 public:
  /// The terms of two columns per lane, of which the tile has `num_columns`; a new piece of a
  /// window begins with its own c.
  template <int heads>
  __device__ void put(PackedStage<heads>& stage, int h, const float (&r)[2], int num_columns,
                      bool begins, float slope) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const bool exists[2] = {lane < num_columns, lane + 32 < num_columns};
    float top = fmaxf(exists[0] ? r[0] : -cuda::infinity, exists[1] ? r[1] : -cuda::infinity);
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) {
      top = fmaxf(top, __shfl_xor_sync(~0u, top, distance));
    }
    // A little room, so that c seldom rises.
    if (begins || top > c_) c_ = top + 1;
    if (begins) first_c_ = c_;
    bool fails = c_ - first_c_ > packed_rise;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int column = lane + 32 * part;
      const float below = r[part] - c_;
      const bool serves = below >= packed_range && slope * below >= packed_sloped_range;
      fails = fails || (exists[part] && !serves);
      __half* const factor = stage.factor_of(h, column);
      factor[0] = __float2half_rn(power_of_2(below + packed_scale));
      factor[4] = __float2half_rn(power_of_2(slope * below));
      stage.r[h][column] = r[part];
    }
    fails = __any_sync(~0u, fails) != 0;
    if (lane == 0) {
      stage.c[h] = c_;
      stage.out_of_range[h] = fails ? 1 : 0;
    }
  }

 private:
  float c_ = 0;
  float first_c_ = 0;  ///< of the piece
};

/// One head's factors of the two rows of a lane, each twice in a word.
struct RowFactors16 {
  std::uint32_t own[2];
  std::uint32_t sloped[2];

  __device__ static float base(float l, float c, float slope) {
    return fmaxf(l + c, slope * (l + c));
  }
  __device__ void set(int row, float l, float c, float slope) {
    const float a = l + c;
    const float b = base(l, c, slope);
    own[row] = twice(power_of_2(a - b));
    sloped[row] = twice(power_of_2(slope * a - b + packed_scale));
  }

  /// The weights of 16 rows and 16 columns as an operand; cells without an edge are 0.
  __device__ void weights(std::uint32_t (&a)[4], const uint4& factors,
                          const std::uint32_t (&masks)[4]) const {
    const std::uint32_t columns[2] = {factors.x, factors.y};
    const std::uint32_t sloped_columns[2] = {factors.z, factors.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __half2 larger = __hmax2(__hmul2(pair(own[i % 2]), pair(columns[i / 2])),
                                     __hmul2(pair(sloped[i % 2]), pair(sloped_columns[i / 2])));
      a[i] = reinterpret_cast<const std::uint32_t&>(larger) & masks[i];
    }
  }

 private:
  __device__ static std::uint32_t twice(float factor) {
    const __half2 both = __float2half2_rn(factor);
    return reinterpret_cast<const std::uint32_t&>(both);
  }
  __device__ static __half2 pair(const std::uint32_t& word) {
    return reinterpret_cast<const __half2&>(word);
  }
};

/// The terms of the rows of a window in powers of two, and what becomes of them. Each warp has its
/// own 16 rows. Registers are dear.
template <int heads>
struct RowTerms {
  uint4 factors[tall_attention_height / 2][heads];  ///< of rows g and g + 8
  float terms[tall_attention_height][heads];

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

  /// For the c of a stage.
  __device__ void set_factors(const float (&c)[heads], float slope) {
    RowFactors16 of_lane[lane_heads];
#pragma unroll
    for (int i = 0; i < lane_heads; ++i) {
      const int h = head_of_lane(i);
      of_lane[i].set(0, term(h, 0), c[h], slope);
      of_lane[i].set(1, term(h, 1), c[h], slope);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < lane_heads; ++i) {
      const RowFactors16& of = of_lane[i];
      factors[pair()][head_of_lane(i)] = {of.own[0], of.own[1], of.sloped[0], of.sloped[1]};
    }
    __syncwarp();
  }
  __device__ RowFactors16 factors_of(int h) const {
    const uint4 both = factors[pair()][h];
    return {{both.x, both.y}, {both.z, both.w}};
  }

  /// Of row g + 8 `row` of this lane's warp.
  __device__ float term(int h, int row) const { return terms[place_of(row)][h]; }

  /// Lanes of a row take their heads.
  template <class T>
  __device__ void load(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                       int first_head) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * lane_heads; ++i) {
      const int h = head_of_lane(i / 2);
      const int place = place_of(i % 2);
      const T* const from = static_cast<const T*>(launch.target) +
                            (std::int64_t{piece.first_row} + place) * launch.target_stride;
      const bool wanted = place < piece.num_rows && first_head + h < launch.heads;
      terms[place][h] = wanted ? cuda::widen(__ldg(from + first_head + h)) * log2_of_e : 0.0f;
    }
    __syncwarp();
  }

 private:
  __device__ static int pair() { return static_cast<int>(threadIdx.x / 4); }
  __device__ static int place_of(int row) {
    return static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(threadIdx.x % 32) / 4 +
           8 * row;
  }
};

}  // namespace tessera::ops
