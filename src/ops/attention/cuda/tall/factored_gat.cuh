// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat_exponentials.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/results.cuh"
#include "ops/windows/matrix_rows.cuh"

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
/// are operands in two parts.
namespace tessera::ops {

/// Such terms make weights of 2^-8 to 2^16. Over 2^8, a hundred thousand of them times features of
/// 2^-100 to 2^100 add up within fp32.
__device__ inline bool is_factored_term(float term) { return fabsf(term) <= 8; }
inline constexpr float factored_base = 8;

/// What the columns of a tile bring, and with the first tile of a piece its rows.
struct alignas(16) FactorColumns {
  static constexpr bool wants_log_sums = false;
  float2 factors[tiles::tile_columns];  ///< 2^r and 2^(slope r), over 2^8
  float r[1][tiles::tile_columns];
  float l[tall_window_height];
  int4 large;  ///< != 0 where a term is too large, of those that either warp brought

  __device__ void put(int, int column, float term, float slope) {
    r[0][column] = term;
    factors[column] = {power_of_2(term - factored_base),
                       power_of_2(fmaf(slope, term, -factored_base))};
    note(term);
  }
  __device__ void put_own(int row, float term, float, float) {
    l[row] = term;
    note(term);
  }
  __device__ bool has_large_terms() const { return (large.x | large.y | large.z | large.w) != 0; }

  /// Weights of a row of this factor, for two neighbouring columns.
  template <class T>
  __device__ void set(StepWeights<T>& weights, int place, int pair, float of_row,
                      std::uint32_t mask) const {
    const float4 both = reinterpret_cast<const float4*>(factors)[pair];
    weights.set(place, fmaxf(of_row * both.x, both.y), fmaxf(of_row * both.z, both.w));
    weights.high[place] &= mask;
    weights.low[place] &= mask;
  }

 private:
  __device__ void note(float term) {
    const int any = __any_sync(~0u, !is_factored_term(term));
    const int warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) reinterpret_cast<int*>(&large)[warp] = any;
  }
};

template <class T, int width>
class FactoredGat : public GatheredWindows<FactoredGat<T, width>, T, width, 1, 0, FactorColumns> {
  using Windows = GatheredWindows<FactoredGat, T, width, 1, 0, FactorColumns>;

 public:
  static constexpr int blocks = width == 32 ? 5 : width == 64 ? 4 : 3;
  using Windows::heads;
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;
  static_assert(heads == 1);

  using Windows::Windows;

  __device__ void begin_piece(const tiles::Piece&) {
    by_exponentials_ = !(launch_.slope >= 0 && launch_.slope <= 1);
    sums_[0] = {};
    if (!by_exponentials_) sums_[0].base[0] = sums_[0].base[1] = 0;
  }
  __device__ void take_own(int turn) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float l = columns_of(turn).l[first_row() + lane() / 4 + 8 * row];
      terms_of_rows_[0][row] = l;
      factor_[row] = power_of_2((1 - launch_.slope) * l);
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).has_large_terms()) {
      settle();
      by_exponentials_ = true;
    }
    if (by_exponentials_) {
      const GatExponentials<T, width, 1> form(launch_.slope, terms_of_rows_);
      form.template add<Rows>(sums_, columns_of(turn), rows_of(turn, 0), pattern, num_steps);
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
  using Windows::columns_of, Windows::lane, Windows::launch_, Windows::first_row, Windows::rows_of;
  using Products = MatrixRows<T, width>;
  using Weights = StepWeights<T>;
  /// There are registers for the weights of so many steps: the fewer blocks there are, the more
  /// each has.
  static constexpr int steps_at_once = blocks < 5 ? 4 : 2;

  __device__ Weights weights_of(const FactorColumns& columns, const TilePattern& pattern,
                                int step) const {
    Weights weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int pair = step * 8 + place / 2 * 4 + lane() % 4;
      columns.set(weights, place, pair, factor_[place % 2], pattern.mask(4 * step + place));
    }
    return weights;
  }
  /// The sums of weights come out of products with ones, complete in every lane, and twice: the
  /// other one has the place of the base, which is none before `settle`.
  __device__ void add_weights(const Weights& weights) {
    HeadSums<T, width>& head = sums_[0];
    const std::uint32_t one = packed<T>(1.0f, 1.0f);
    const std::uint32_t ones[2] = {one, one};
    float sums[4] = {head.sum[0], head.base[0], head.sum[1], head.base[1]};
    cuda::multiply_16x8<T>(sums, weights.low, ones);
    cuda::multiply_16x8<T>(sums, weights.high, ones);
    head.sum[0] = sums[0];
    head.base[0] = sums[1];
    head.sum[1] = sums[2];
    head.base[1] = sums[3];
  }

  /// The products of a step are in flight while the weights of the next are found.
  template <int steps>
  __device__ void add_tile(int turn, const TilePattern& pattern) {
    Weights weights[steps][1];
    auto& sums = reinterpret_cast<typename Products::Sums&>(sums_[0].features);
    Products::begin(sums);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      if (step >= steps_at_once) Products::wait_for_all_but_last();
      weights[step][0] = weights_of(columns_of(turn), pattern, step);
      // Before the products: their operands must not be read while they are in flight.
      add_weights(weights[step][0]);
      Products::begin_step(weights[step]);
      Products::add(sums, weights[step][0], rows_of(turn, 0), 0, step);
      Products::commit();
    }
    Products::wait(sums);
  }

  /// From now on sums are relative to bases, as exponentials and results want them.
  __device__ void settle() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float weight = sums_[0].sum[row];
      const float base = fmaf(launch_.slope, terms_of_rows_[0][row], factored_base);
      sums_[0].base[row] = weight == 0 ? lowest_base : base;
      sums_[0].sum[row] = lane() % 4 == 0 ? weight : 0.0f;
    }
  }

  float terms_of_rows_[1][2];
  float factor_[2];
  bool by_exponentials_ = false;
  HeadSums<T, width> sums_[1];
};

}  // namespace tessera::ops
