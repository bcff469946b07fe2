// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/gat_own_terms.cuh"
#include "ops/attention/cuda/short/results.cuh"
#include "ops/windows/edge_weights.cuh"

/// The forward pass of GAT over windows of 16 rows. A weight is, relative to that of a source of
/// term 0 with a minus,
///
///     max(2^((1 - slope) l) 2^r, 2^(slope r))
///
/// (l and r in powers of two, slope in [0, 1]): one factor per row and two per column, a
/// multiplication and a maximum per cell. A lane finds one of the 32 factors of a step. Pieces with
/// terms so large that weights would lie far apart take a second turn, by an exponential per cell.
namespace tessera::ops {

/// One piece by an exponential per cell, with nothing in flight meanwhile: cells become weights of
/// the rows of V.
template <class T, int width>
class ShortGatExponentials {
 public:
  __device__ ShortGatExponentials(const WindowsLaunch& launch, const GatRows& values)
      : launch_(launch), values_(values) {}

  __device__ void attend(const tiles::Piece& piece) {
    own_.load(launch_, piece);
    clear();
    for (int i = 0; i < piece.num_steps; ++i) {
      const VertexId* const columns =
          launch_.columns + (std::int64_t{piece.first_step} + i) * tiles::step_columns;
      const std::uint32_t word =
          launch_.words[(std::int64_t{piece.first_tile} + i / 4) * 32 + WarpLane::number()];
      add_rows_now(sums_, weights_of(columns, word >> (4 * (i % 4))), values_, columns);
    }
    finish(piece);
  }

 private:
  __device__ void clear() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      base_[row] = lowest_base;
      sum_[row] = 0;
    }
    sums_.clear();
  }

  __device__ void finish(const tiles::Piece& piece) const {
    const ShortResults<T, width> results(launch_, piece);
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float total = sum_[row] + __shfl_xor_sync(~0u, sum_[row], 1);
      total += __shfl_xor_sync(~0u, total, 2);
      factors[row] =
          results.settle(WarpLane::group() + 8 * row, base_[row], total, WarpLane::quarter() == 0);
    }
    float of_sums[2][2];
    to_sums(factors, of_sums);
#pragma unroll
    for (int i = 0; i < FeatureSums<T, width>::chunks * 4; ++i) {
      const int chunk = i / 4;
      const int half = i / 2 % 2;
      const int odd = i % 2;
      float features[8];
      sums_.row(chunk, half, odd, features);
      results.store(8 * half + 2 * WarpLane::quarter() + odd, chunk * 64 + WarpLane::group() * 8,
                    features, of_sums[half][odd]);
    }
    results.finish();
  }

  __device__ StepOperands<T> weights_of(const VertexId* columns, std::uint32_t bits) {
    StepCells cells;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const VertexId column = columns[column_of_cell(i)];
      const float r =
          cuda::widen(gat_term<T>(launch_.source, launch_.source_stride, column)) * log2_of_e;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float sum = own_.l(row) + r;
        cells.of[i / 2][2 * row + i % 2] = sum > 0 ? sum : launch_.slope * sum;
      }
    }
    settle(cells, bits);
    return StepOperands<T>(cells);
  }
  /// Scores of a step, in powers of two, become weights, of which cells without an edge have none;
  /// bases make room for the largest score of each row.
  __device__ void settle(StepCells& cells, std::uint32_t bits) {
    float top[2];
    cells.settle(bits, 1, top);
    if (__any_sync(~0u, must_rise(0, top[0]) || must_rise(1, top[1])) != 0) raise(top);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& cell = cells.of[i][k];
        cell = power_of_2(cell - base_[k / 2]);
        sum_[k / 2] += cell;
      }
    }
  }

  __device__ bool must_rise(int row, float top) const {
    return WeightBase<T>::must_rise(base_[row], top);
  }
  /// `top` of what this lane has of its rows.
  __device__ void raise(float (&top)[2]) {
#pragma unroll
    for (float& of_row : top) {
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 2));
    }
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float base = must_rise(row, top[row]) ? WeightBase<T>::under(top[row]) : base_[row];
      factors[row] = power_of_2(base_[row] - base);
      base_[row] = base;
      sum_[row] *= factors[row];
    }
    float of_sums[2][2];
    to_sums(factors, of_sums);
    sums_.scale(of_sums);
  }
  /// A number of each row from the lanes that have its cells to those that have its sums.
  __device__ static void to_sums(const float (&of_cells)[2], float (&of_sums)[2][2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        of_sums[half][odd] = __shfl_sync(~0u, of_cells[half], 4 * (2 * WarpLane::quarter() + odd));
      }
    }
  }

  const WindowsLaunch& launch_;
  const GatRows& values_;
  OwnGatTerms<T> own_;
  FeatureSums<T, width> sums_;
  float base_[2], sum_[2];  ///< of rows g and g + 8, the sums over this lane's columns
};

/// Factors 2^r and 2^(slope r) of columns, over 2^8.
struct GatFactors {
  float of[2 * tiles::step_columns];
};

template <class T, int width>
class ShortGat : public GatForward<ShortGat<T, width>, WindowsLaunch, T, width, GatFactors> {
  using Forward = GatForward<ShortGat, WindowsLaunch, T, width, GatFactors>;
  using Forward::launch_, Forward::own_;

 public:
  static constexpr int blocks = width == 64 ? 16 : 12;
  using Forward::Forward;

  __device__ void attend_by_exponentials(const tiles::Piece& piece) const {
    ShortGatExponentials<T, width>(launch_, this->values_).attend(piece);
  }

  __device__ void begin_piece(const tiles::Piece&) {
    sums_.clear();
#pragma unroll
    for (int i = 0; i < 8; ++i) weight_sums_[i / 4][i % 4] = 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      factor_[row] = power_of_2((1 - launch_.slope) * this->next_own_.l(row));
    }
    this->take_own();
  }
  __device__ void share() {
    float* const factors = this->next_exchange().of;
    factors[2 * brought_column() + WarpLane::number() / 16] = this->shared_factor();
  }

  template <class Weigh>
  __device__ void add(std::uint32_t bits, Weigh&& weigh) {
    const StepOperands<T> weights = weights_of(TilePattern{bits});
    weigh(sums_, weights);
    // Sums of weights come out of products with ones, twice.
    constexpr std::uint32_t one = std::is_same_v<T, __nv_bfloat16> ? 0x3f803f80u : 0x3c003c00u;
    const std::uint32_t ones[4] = {one, one, one, one};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      cuda::multiply_16x8<T>(weight_sums_[half], ones, weights.low[half]);
      cuda::multiply_16x8<T>(weight_sums_[half], ones, weights.high[half]);
    }
  }

  __device__ void finish(const tiles::Piece& piece, bool) const {
    const ShortResults<T, width> results(launch_, piece);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base_of_cells = fmaf(launch_.slope, own_.l(half), FactoredTerms::base);
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int place = 2 * WarpLane::quarter() + odd;
        const float base = __shfl_sync(~0u, base_of_cells, 4 * place);
        const float sum = weight_sums_[half][odd];
        const float factor = results.settle(8 * half + place, sum == 0 ? lowest_base : base, sum,
                                            WarpLane::group() == 0);
#pragma unroll
        for (int chunk = 0; chunk < FeatureSums<T, width>::chunks; ++chunk) {
          float features[8];
          sums_.row(chunk, half, odd, features);
          results.store(8 * half + place, chunk * 64 + WarpLane::group() * 8, features, factor);
        }
      }
    }
    results.finish();
  }

 private:
  __device__ StepOperands<T> weights_of(const TilePattern& pattern) {
    const float4* const pairs =
        reinterpret_cast<const float4*>(&this->exchange()) + WarpLane::quarter();
    StepOperands<T> weights;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 of_columns = pairs[4 * i];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const PackedTwice<T> pair(fmaxf(factor_[row] * of_columns.x, of_columns.y),
                                  fmaxf(factor_[row] * of_columns.z, of_columns.w));
        const std::uint32_t mask = pattern.mask(2 * i + row);
        weights.high[row][i] = pair.high & mask;
        weights.low[row][i] = pair.low & mask;
      }
    }
    return weights;
  }

  float factor_[2];          ///< of rows g and g + 8
  float weight_sums_[2][4];  ///< of rows 2q and 2q + 1, then of those 8 further on
  FeatureSums<T, width> sums_;
};

}  // namespace tessera::ops
