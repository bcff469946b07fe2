// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "ops/attention/cuda/short/gat_own_terms.cuh"
#include "ops/attention/cuda/short/softmax.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The forward pass of GAT over windows of 16 rows. A weight is, relative to that of a source of
/// term 0 with a minus,
///
///     max(2^((1 - slope) l) 2^r, 2^(slope r))
///
/// (l and r in powers of two, slope in [0, 1]): one factor per row and two per column, a
/// multiplication and a maximum per cell. A lane finds one of the 32 factors of a step. Pieces with
/// terms so large that weights would lie far apart take a second turn, by an exponential per cell.
namespace tessera::ops {

/// One piece by an exponential per cell, with nothing on its way meanwhile.
template <class T, int width>
class GatExponentials : public ShortSoftmax<T, width> {
  using Softmax = ShortSoftmax<T, width>;
  using Softmax::launch_;

 public:
  __device__ GatExponentials(const TallAttentionLaunch& launch, const GatRows& values)
      : Softmax(launch), values_(values) {}

  __device__ void attend(const tiles::Piece& piece) {
    own_.load(launch_, piece);
    Softmax::clear();
    for (int i = 0; i < piece.num_steps; ++i) {
      const VertexId* const columns =
          launch_.columns + (std::int64_t{piece.first_step} + i) * tiles::step_columns;
      const std::uint32_t word =
          launch_.words[(std::int64_t{piece.first_tile} + i / 4) * 32 + WarpLane::number()];
      add_rows_now(this->sums_, weights_of(columns, word >> (4 * (i % 4))), values_, columns);
    }
    Softmax::finish(piece);
  }

 private:
  __device__ StepOperands<T> weights_of(const VertexId* columns, std::uint32_t bits) {
    StepCells cells;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const VertexId column = columns[2 * WarpLane::quarter() + i % 2 + i / 2 * 8];
      const float r =
          cuda::widen(gat_term<T>(launch_.source, launch_.source_stride, column)) * log2_of_e;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const float sum = own_.l(row) + r;
        cells.of[i / 2][2 * row + i % 2] = sum > 0 ? sum : launch_.slope * sum;
      }
    }
    Softmax::settle(cells, bits);
    return StepOperands<T>(cells);
  }

  const GatRows& values_;
  OwnGatTerms<T> own_;
};

template <class T, int width>
class ShortGat {
  /// Factors 2^r and 2^(slope r) of columns, over 2^8, where lanes leave them for each other.
  using Exchange = float2[tiles::step_columns];

 public:
  static constexpr int shared_bytes =
      GatWindows<width>::bytes + 2 * static_cast<int>(sizeof(Exchange));

  __device__ ShortGat(const TallAttentionLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        values_(launch.value, launch.value_stride, width, WarpLane::group() * 8),
        sources_(launch.source, launch.source_stride, 1, 0),
        unit_(WarpLane::number() < 16 ? log2_of_e : log2_of_e * launch.slope) {}

  __device__ void run(std::int32_t begin, std::int32_t end) {
    std::int32_t left = GatWindows<width>::walk(*this, launch_, values_, begin, end,
                                                memory_ + 2 * sizeof(Exchange));
    for (; left < end; ++left) {
      const tiles::Piece piece = launch_.pieces[left];
      if (!factors_serve<T>(launch_, piece))
        GatExponentials<T, width>(launch_, values_).attend(piece);
    }
  }

  __device__ void load_own(const tiles::Piece& piece) { next_own_.load(launch_, piece); }
  __device__ void begin_piece(const tiles::Piece&) {
    own_ = next_own_;
    sums_.clear();
#pragma unroll
    for (int i = 0; i < 8; ++i) weight_sums_[i / 4][i % 4] = 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) factor_[row] = power_of_2((1 - launch_.slope) * own_.l(row));
    largest_ = FactoredTerms::serve(launch_, own_) ? 0.0f : cuda::infinity;
  }

  __device__ void bring(VertexId column) {
    term_ = __ldg(reinterpret_cast<const T*>(sources_.at(column)));
  }
  __device__ void share() {
    shared_term_ = cuda::widen(term_);
    const float factor = power_of_2(fmaf(shared_term_, unit_, -FactoredTerms::base));
    turn_ ^= sizeof(Exchange);
    reinterpret_cast<float*>(memory_ + turn_)[2 * brought_column() + WarpLane::number() / 16] =
        factor;
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

  __device__ bool fits() const { return __all_sync(~0u, FactoredTerms::serve(largest_)) != 0; }

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
    largest_ = fmaxf(largest_, fabsf(shared_term_));
    const float4* const pairs =
        reinterpret_cast<const float4*>(memory_ + turn_) + WarpLane::quarter();
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

  const TallAttentionLaunch& launch_;
  char* memory_;
  GatRows values_;
  GatRows sources_;
  float unit_;               ///< of the exponent that this lane finds
  T term_;                   ///< of the column that it brings
  float shared_term_ = 0;    ///< of the column whose factor it left for others
  OwnGatTerms<T> own_;       ///< of this piece
  OwnGatTerms<T> next_own_;  ///< of the next
  float factor_[2];          ///< of rows g and g + 8
  float largest_ = 0;        ///< of terms of columns that this lane brought
  unsigned turn_ = 0;        ///< which of two exchanges was filled last
  float weight_sums_[2][4];  ///< of rows 2q and 2q + 1, then of those 8 further on
  FeatureSums<T, width> sums_;
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_gat_blocks = width == 64 ? 16 : 12;

template <class T, int width>
__global__ __launch_bounds__(32, (short_gat_blocks<width>)) void attend_short_gat(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGat<T, width>>(launch);
}

template <class T>
constexpr ShortAttentionFunctions make_short_gats() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{short_function<ShortGat<T, short_head_widths[i]>,
                                                  attend_short_gat<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
