// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/matrix_rows.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

/// The forward pass of GAT with heads of 32, 64 or 128 features in bf16 over windows of 64 rows.
/// Its products are those of a sum of rows: a group of four warps multiplies at once, and the
/// matrix unit reads the gathered rows where they lie. A weight is, relative to that of a source of
/// term 0 with a minus,
///
///     max(2^((1 - slope) l) 2^r, 2^(slope r))
///
/// (l and r in powers of two, slope in [0, 1]): one factor per row and two per column, a
/// multiplication and a maximum per cell, and no base that has to follow. Where a term is so large
/// that weights would lie far apart, the rest of the piece takes an exponential per cell.
namespace tessera::ops {

/// Such terms make weights of 2^-8 to 2^16. Over 2^8, a hundred thousand of them times features of
/// 2^-100 to 2^100 add up within fp32.
__device__ inline bool is_factored_term(float term) { return fabsf(term) <= 8; }
inline constexpr float factored_base = 8;

/// What the columns of a tile bring.
struct alignas(16) FactorColumns {
  float2 factors[tiles::tile_columns];  ///< 2^r and 2^(slope r), over 2^8
  float r[1][tiles::tile_columns];
  int too_large[2];  ///< != 0: a term of the columns of a warp

  __device__ void put(int, int column, float term, float slope) {
    r[0][column] = term;
    factors[column] = {power_of_2(term - factored_base),
                       power_of_2(fmaf(slope, term, -factored_base))};
    const int any = __any_sync(~0u, !is_factored_term(term));
    if (column % 32 == 0) too_large[column / 32] = any;
  }
  __device__ bool has_large_term() const { return (too_large[0] | too_large[1]) != 0; }
};

template <class T, int width>
class FactoredGat : public GatheredWindows<FactoredGat<T, width>, T, width, 1, 0, FactorColumns> {
  using Windows = GatheredWindows<FactoredGat, T, width, 1, 0, FactorColumns>;

 public:
  using Windows::heads;
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;
  static_assert(heads == 1);

  using Windows::Windows;

  __device__ void begin_piece(const tiles::Piece& piece) {
    piece_ = piece;
    const float slope = launch_.slope;
    bool fails = !(slope >= 0 && slope <= 1);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float l =
          expected_ ? next_terms_[row] : own_gat_term<T>(launch_, piece, first_head(), row);
      factor_[row] = power_of_2((1 - slope) * l);
      fails = fails || !is_factored_term(l);
    }
    // All warps of a group go the same way.
    by_exponentials_ = __syncthreads_or(fails ? 1 : 0) != 0;
    sums_[0] = {};
#pragma unroll
    for (float& weight : weights_) weight = 0;
  }

  /// The terms of the next window are on their way while this one is computed.
  __device__ void expect(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      next_terms_[row] = own_gat_term<T>(launch_, piece, first_head(), row);
    }
    expected_ = true;
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).has_large_term()) {
      settle();
      by_exponentials_ = true;
    }
    if (by_exponentials_) {
      GatTiles<T, width, 1> form(launch_, first_head());
      form.begin_window(piece_);
      add_exponentials<Rows>(sums_, form, columns_of(turn), rows_of(turn, 0), pattern, num_steps);
    } else {
      with_constant_steps(num_steps, [&](auto steps) { add_tile<steps>(turn, pattern); });
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    if (!by_exponentials_) settle();
    finish_piece<T, width>(launch_, piece, sums_);
  }
  __device__ void end() const {}

 private:
  using typename Windows::Rows;
  using Windows::columns_of;
  using Windows::first_head;
  using Windows::lane;
  using Windows::launch_;
  using Windows::rows_of;
  using Windows::tile_steps;
  using Products = MatrixRows<T, width>;

  __device__ StepWeights<T> weights_of(const FactorColumns& columns, const TilePattern& pattern,
                                       int step) const {
    StepWeights<T> weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      // Of the even column, then of the odd one.
      const float4 factors = *reinterpret_cast<const float4*>(&columns.factors[column]);
      const float of_row = factor_[place % 2];
      weights.set(place, fmaxf(of_row * factors.x, factors.y),
                  fmaxf(of_row * factors.z, factors.w));
      const std::uint32_t mask = pattern.mask(4 * step + place);
      weights.high[place] &= mask;
      weights.low[place] &= mask;
    }
    return weights;
  }
  /// The sums of weights come out of products with ones, complete in every lane.
  __device__ void add_weights(const StepWeights<T>& weights) {
    const std::uint32_t one = packed<T>(1.0f, 1.0f);
    const std::uint32_t ones[2] = {one, one};
    cuda::multiply_16x8<T>(weights_, weights.low, ones);
    cuda::multiply_16x8<T>(weights_, weights.high, ones);
  }

  /// Nothing waits for a step before the weights of all are known.
  template <int steps>
  __device__ void add_tile(int turn, const TilePattern& pattern) {
    StepWeights<T> weights[steps];
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      weights[step] = weights_of(columns_of(turn), pattern, step);
      Products::keep(weights[step]);
    }
    auto& sums = reinterpret_cast<typename Products::Sums&>(sums_[0].features);
    Products::begin(sums);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      Products::add(sums, weights[step], rows_of(turn, 0), 0, step);
    }
    Products::commit();
#pragma unroll
    for (int step = 0; step < steps; ++step) add_weights(weights[step]);
    Products::wait(sums);
  }

  /// From now on sums are relative to bases, as exponentials and results want them.
  __device__ void settle() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float weight = weights_[2 * row];
      const float l = own_gat_term<T>(launch_, piece_, first_head(), row);
      sums_[0].base[row] = weight == 0 ? lowest_base : fmaf(launch_.slope, l, factored_base);
      sums_[0].sum[row] = lane() % 4 == 0 ? weight : 0.0f;
    }
  }

  tiles::Piece piece_;
  float factor_[2];
  float next_terms_[2] = {};
  bool expected_ = false;
  bool by_exponentials_ = false;
  HeadSums<T, width> sums_[1];
  float weights_[4];  ///< their sums, of row g and, from 2 on, of row g + 8
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
constexpr int factored_gat_blocks(int width) { return width == 128 ? 3 : 4; }

template <class T, int width>
__global__ __launch_bounds__(
    tall_attention_threads,
    factored_gat_blocks(width)) void attend_factored(const TallAttentionLaunch launch) {
  run_gathered_windows<FactoredGat<T, width>>(launch);
}

template <class T, int width>
constexpr TallAttentionFunction make_factored_gat() {
  return gathered_function<FactoredGat<T, width>, attend_factored<T, width>>();
}

}  // namespace tessera::ops
