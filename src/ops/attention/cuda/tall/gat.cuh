// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/window.cuh"

/// Scores leaky_relu(l[i] + r[j]) on tiles. They need no exponential per cell: with c the largest r
/// of a tile and L the exponential of leaky_relu,
///
///     L(l + r) = max(2^(l + c) 2^(r - c), 2^(slope (l + c)) 2^(slope (r - c)))
///
/// (l, r and c in powers of two, slope in [0, 1]), two factors per row and two per column. Where
/// the r of a tile lie so far apart that small factors would lose digits, each cell takes its own
/// exponential.
namespace tessera::ops {

/// The term of a head for row g + 8 `row` of this lane, in powers of two; 0 where there is none.
template <class T>
__device__ float own_gat_term(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                              int head, int row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int place = static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * row;
  if (place >= piece.num_rows || head >= launch.heads) return 0;
  return log2_of_e *
         cuda::widen(__ldg(static_cast<const T*>(launch.target) +
                           (std::int64_t{piece.first_row} + place) * launch.target_stride + head));
}

template <class T, int width, int heads>
class GatTiles {
 public:
  static constexpr int features = width * heads;
  static constexpr int columns = tiles::tile_columns;

  /// Beside the rows of V: for every head the r of a tile, their factors, and what these belong to.
  struct Stage {
    float r[heads][columns];
    float factor[heads][columns];
    float sloped_factor[heads][columns];
    float top[heads];
    int factors_fail[heads];  ///< != 0 where they would lose digits
  };
  static constexpr int stage_bytes = (static_cast<int>(sizeof(Stage)) + 15) / 16 * 16;

  __device__ GatTiles(const TallAttentionLaunch& launch, int first_head)
      : launch_(launch), first_head_(first_head) {}

  /// For who knows the terms of the two rows of this lane.
  __device__ GatTiles(const TallAttentionLaunch& launch, int first_head,
                      const float (&terms)[2]) requires(heads == 1)
      : launch_(launch), first_head_(first_head), l_{{terms[0], terms[1]}} {}

  /// Loads these, per head.
  __device__ void begin_window(const tiles::Piece& piece) {
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      l_[i / 2][i % 2] = own_gat_term<T>(launch_, piece, first_head_ + i / 2, i % 2);
    }
  }

  __device__ void expect(const tiles::Piece&) const {}

  /// Warps take heads in turn, lanes two columns each.
  static constexpr int share = (heads + 3) / 4;
  struct Fetched {
    int num_columns;
    T raw[share][2];  ///< as they lie in memory: who converted them would wait for them

    /// In powers of two.
    __device__ float r(int i, int part) const { return cuda::widen(raw[i][part]) * log2_of_e; }
  };
  __device__ Fetched fetch(const VertexId (&vertices)[2], int num_columns) const {
    Fetched fetched;
    fetched.num_columns = num_columns;
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const T* const from = static_cast<const T*>(launch_.source) +
                            std::int64_t{vertices[part]} * launch_.source_stride;
#pragma unroll
      for (int i = 0; i < share; ++i) {
        const int head = first_head_ + static_cast<int>(threadIdx.x / 32) + 4 * i;
        const bool wanted = lane + 32 * part < num_columns && head < launch_.heads;
        fetched.raw[i][part] = wanted ? __ldg(from + head) : cuda::narrow<T>(0.0f);
      }
    }
    return fetched;
  }
  __device__ void put(Stage& stage, const Fetched& fetched) const {
    const int num_columns = fetched.num_columns;
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int h = static_cast<int>(threadIdx.x / 32) + 4 * i;
      if (h >= heads) continue;
      const bool second = lane + 32 < num_columns;
      const float terms[2] = {fetched.r(i, 0), fetched.r(i, 1)};
      float top = lane < num_columns ? terms[0] : -cuda::infinity;
      float low = lane < num_columns ? terms[0] : cuda::infinity;
      if (second) {
        top = fmaxf(top, terms[1]);
        low = fminf(low, terms[1]);
      }
#pragma unroll
      for (int distance = 16; distance >= 1; distance /= 2) {
        top = fmaxf(top, __shfl_xor_sync(~0u, top, distance));
        low = fminf(low, __shfl_xor_sync(~0u, low, distance));
      }
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const float r = terms[part];
        stage.r[h][lane + 32 * part] = r;
        stage.factor[h][lane + 32 * part] = power_of_2(r - top);
        stage.sloped_factor[h][lane + 32 * part] = power_of_2(launch_.slope * (r - top));
      }
      if (lane == 0) {
        stage.top[h] = top;
        const bool serve =
            top - low <= WeightRange<T>::below && launch_.slope >= 0 && launch_.slope <= 1;
        stage.factors_fail[h] = serve ? 0 : 1;
      }
    }
  }

  /// Before the heads of a tile: whether factors serve for all of them. Bases then rise to what the
  /// rows with edges in the tile may reach.
  __device__ bool begin_tile(const Stage& stage, const bool (&has_edges)[2],
                             HeadSums<T, width> (&sums)[heads]) const {
    int fail = 0;
#pragma unroll
    for (int h = 0; h < heads; ++h) fail |= stage.factors_fail[h];
    if (fail != 0) return false;
    bool must_rise = false;
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const bool rises = sums[i / 2].must_rise(i % 2, most(stage, i / 2, i % 2));
      must_rise = must_rise || (has_edges[i % 2] && rises);
    }
    if (__any_sync(~0u, must_rise) == 0) return true;
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      if (has_edges[i % 2]) sums[i / 2].raise(i % 2, most(stage, i / 2, i % 2));
    }
    return true;
  }

  /// One head's factors of the two rows of this lane.
  struct RowFactors {
    float own[2];
    float sloped[2];
  };
  __device__ RowFactors row_factors(const Stage& stage, int h,
                                    const HeadSums<T, width>& sums) const {
    RowFactors factors;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float raw = l_[h][row] + stage.top[h];
      factors.own[row] = power_of_2(raw - sums.base[row]);
      factors.sloped[row] = power_of_2(launch_.slope * raw - sums.base[row]);
    }
    return factors;
  }
  __device__ static StepWeights<T> weights(const Stage& stage, int h, const RowFactors& rows,
                                           int step, const StepPattern& pattern,
                                           HeadSums<T, width>& sums) {
    StepWeights<T> weights;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = step * 16 + half * 8 + static_cast<int>(threadIdx.x % 4) * 2;
      const float2 factor = *reinterpret_cast<const float2*>(&stage.factor[h][column]);
      const float2 sloped = *reinterpret_cast<const float2*>(&stage.sloped_factor[h][column]);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int place = 2 * half + row;
        float even = fmaxf(rows.own[row] * factor.x, rows.sloped[row] * sloped.x);
        float odd = fmaxf(rows.own[row] * factor.y, rows.sloped[row] * sloped.y);
        even = pattern.masked(even, place, 0);
        odd = pattern.masked(odd, place, 1);
        sums.sum[row] += even + odd;
        weights.set(place, even, odd);
      }
    }
    return weights;
  }

  /// The largest scores of one head that this lane finds in a step. Of a stage the r are read.
  template <class AnyStage>
  __device__ void find_top(const AnyStage& stage, int h, int step, const StepPattern& pattern,
                           float (&top)[2]) const {
    each_score(stage, h, step, [&](int place, float even, float odd) {
      float& of_row = top[place % 2];
      of_row = fmaxf(of_row, pattern.has(place, 0) ? even : -cuda::infinity);
      of_row = fmaxf(of_row, pattern.has(place, 1) ? odd : -cuda::infinity);
    });
  }
  /// Weights that take an exponential each.
  template <class AnyStage>
  __device__ StepWeights<T> exponentials(const AnyStage& stage, int h, int step,
                                         const StepPattern& pattern,
                                         HeadSums<T, width>& sums) const {
    StepWeights<T> weights;
    each_score(stage, h, step, [&](int place, float even, float odd) {
      const int row = place % 2;
      even = pattern.masked(power_of_2(even - sums.base[row]), place, 0);
      odd = pattern.masked(power_of_2(odd - sums.base[row]), place, 1);
      sums.sum[row] += even + odd;
      weights.set(place, even, odd);
    });
    return weights;
  }

 private:
  __device__ float leaky(float x) const { return x > 0 ? x : launch_.slope * x; }

  /// Calls body(place, score of the even column, score of the odd one).
  template <class AnyStage, class Body>
  __device__ void each_score(const AnyStage& stage, int h, int step, Body&& body) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = step * 16 + half * 8 + static_cast<int>(threadIdx.x % 4) * 2;
      const float2 r = *reinterpret_cast<const float2*>(&stage.r[h][column]);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        body(2 * half + row, leaky(l_[h][row] + r.x), leaky(l_[h][row] + r.y));
      }
    }
  }

  /// No score of the row in this tile is larger.
  __device__ float most(const Stage& stage, int h, int row) const {
    return leaky(l_[h][row] + stage.top[h]);
  }

  const TallAttentionLaunch& launch_;
  int first_head_;
  float l_[heads][2];
};

}  // namespace tessera::ops
