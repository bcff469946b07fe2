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
/// that weights would lie far apart, the rest of the piece takes an exponential per cell. Weights
/// are operands in two parts, or rounded once.
namespace tessera::ops {

/// Such terms make weights of 2^-8 to 2^16. Over 2^8, a hundred thousand of them times features of
/// 2^-100 to 2^100 add up within fp32.
__device__ inline bool is_factored_term(float term) { return fabsf(term) <= 8; }
inline constexpr float factored_base = 8;

/// Whether the columns of a tile have a term that is too large: those of either warp that brought
/// some.
struct LargeTerms {
  int any[2];

  __device__ void put(int column, float term) {
    const int found = __any_sync(~0u, !is_factored_term(term));
    if (column % 32 == 0) any[column / 32] = found;
  }
  __device__ bool exist() const { return (any[0] | any[1]) != 0; }
};

/// What the columns of a tile bring, for weights in two parts.
template <class T>
struct alignas(16) FactorColumns {
  using Weights = StepWeights<T>;

  float2 factors[tiles::tile_columns];  ///< 2^r and 2^(slope r), over 2^8
  float r[1][tiles::tile_columns];
  LargeTerms large;

  __device__ void put(int, int column, float term, float slope) {
    r[0][column] = term;
    factors[column] = {power_of_2(term - factored_base),
                       power_of_2(fmaf(slope, term, -factored_base))};
    large.put(column, term);
  }
  /// Those of a row of this factor, for column `even` and the next.
  __device__ void set(Weights& weights, int place, int even, float of_row,
                      std::uint32_t mask) const {
    const float4 both = *reinterpret_cast<const float4*>(&factors[even]);
    weights.set(place, fmaxf(of_row * both.x, both.y), fmaxf(of_row * both.z, both.w));
    weights.high[place] &= mask;
    weights.low[place] &= mask;
  }
};

/// The same for weights that are rounded once, for which the larger factor may be rounded before.
template <class T>
struct alignas(16) RoundedColumns {
  using Weights = RoundedWeights<T>;

  struct alignas(16) Pair {
    float factors[2];  ///< 2^r over 2^8
    T sloped[2];       ///< 2^(slope r) over 2^8
  };
  Pair pairs[tiles::tile_columns / 2];
  float r[1][tiles::tile_columns];
  LargeTerms large;

  __device__ void put(int, int column, float term, float slope) {
    r[0][column] = term;
    Pair& pair = pairs[column / 2];
    pair.factors[column % 2] = power_of_2(term - factored_base);
    pair.sloped[column % 2] = cuda::narrow<T>(power_of_2(fmaf(slope, term, -factored_base)));
    large.put(column, term);
  }
  __device__ void set(Weights& weights, int place, int even, float of_row,
                      std::uint32_t mask) const {
    const uint4 both = *reinterpret_cast<const uint4*>(&pairs[even / 2]);
    const std::uint32_t products =
        packed<T>(of_row * __uint_as_float(both.x), of_row * __uint_as_float(both.y));
    weights.high[place] = larger_of_pairs<T>(products, both.z) & mask;
  }
};

template <class T, int width, class Columns>
class FactoredGat
    : public GatheredWindows<FactoredGat<T, width, Columns>, T, width, 1, 0, Columns> {
  using Windows = GatheredWindows<FactoredGat, T, width, 1, 0, Columns>;

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
      const float l = own_gat_term<T>(launch_, piece, first_head(), row);
      terms_of_rows_[row] = l;
      factor_[row] = power_of_2((1 - slope) * l);
      fails = fails || !is_factored_term(l);
    }
    // All warps of a group go the same way.
    by_exponentials_ = __syncthreads_or(fails ? 1 : 0) != 0;
    sums_[0] = {};
#pragma unroll
    for (float& weight : weights_) weight = 0;
  }

  /// The terms of the next window should be near when it begins. Registers to have them in all the
  /// time there are none.
  __device__ void expect(const tiles::Piece& piece) const {
    const int place = first_row() + lane();
    if (lane() >= 16 || place >= piece.num_rows) return;
    cuda::expect_in_l2(static_cast<const T*>(launch_.target) +
                       (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                       first_head());
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).large.exist()) {
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
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::rows_of;
  using Windows::tile_steps;
  using Products = MatrixRows<T, width>;
  using Weights = typename Columns::Weights;

  __device__ Weights weights_of(const Columns& columns, const TilePattern& pattern,
                                int step) const {
    Weights weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int even = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      columns.set(weights, place, even, factor_[place % 2], pattern.mask(4 * step + place));
    }
    return weights;
  }
  /// The sums of weights come out of products with ones, complete in every lane.
  __device__ void add_weights(const Weights& weights) {
    const std::uint32_t one = packed<T>(1.0f, 1.0f);
    const std::uint32_t ones[2] = {one, one};
    if constexpr (have_low_parts<Weights>) cuda::multiply_16x8<T>(weights_, weights.low, ones);
    cuda::multiply_16x8<T>(weights_, weights.high, ones);
  }

  /// Nothing waits for a step before the weights of all are known.
  template <int steps>
  __device__ void add_tile(int turn, const TilePattern& pattern) {
    Weights weights[steps];
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
      const float base = fmaf(launch_.slope, terms_of_rows_[row], factored_base);
      sums_[0].base[row] = weight == 0 ? lowest_base : base;
      sums_[0].sum[row] = lane() % 4 == 0 ? weight : 0.0f;
    }
  }

  tiles::Piece piece_;
  float terms_of_rows_[2];
  float factor_[2];
  bool by_exponentials_ = false;
  HeadSums<T, width> sums_[1];
  float weights_[4];  ///< their sums, of row g and, from 2 on, of row g + 8
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
constexpr int factored_gat_blocks(int width) { return width == 128 ? 3 : 4; }

template <class T, int width, class Columns>
__global__ __launch_bounds__(
    tall_attention_threads,
    factored_gat_blocks(width)) void attend_factored(const TallAttentionLaunch launch) {
  run_gathered_windows<FactoredGat<T, width, Columns>>(launch);
}

template <class T, int width, class Columns>
constexpr TallAttentionFunction make_factored_gat() {
  return gathered_function<FactoredGat<T, width, Columns>, attend_factored<T, width, Columns>>();
}

}  // namespace tessera::ops
