// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "cuda/softmax.cuh"
#include "ops/attention/cuda/exponentials.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/packed.cuh"

/// What the backward pass of GAT knows of the vertices of a tile: those of the window, two rows per
/// lane, and those that are its columns. All terms are in powers of two.
namespace tessera::ops {

/// Exponents of the factors that gathered rows are multiplied by. They leave room for the rows:
/// sums of a hundred thousand of them stay within fp32 if features are of 2^-100 to 2^100.
inline constexpr float least_gat_exponent = -20;
inline constexpr float largest_gat_exponent = 8;
__device__ inline bool is_extreme_exponent(float exponent) {
  return !(exponent >= least_gat_exponent && exponent <= largest_gat_exponent);
}

/// Factors of the window's own vertices multiply sums to what is not larger than the features: all
/// that counts is that they are finite and not 0.
inline constexpr float largest_own_exponent = 40;
__device__ inline bool is_extreme_own_exponent(float exponent) {
  return !(fabsf(exponent) <= largest_own_exponent);
}

/// What the sweep over rows leaves of a target and head.
struct alignas(16) GatRowState {
  float minus_l;       ///< 0 - l: +0 for 0, as the sign of minus_l - r is what tells the side
  float shift;         ///< what r is added to with a plus
  float sloped_shift;  ///< what slope times r is added to with a minus
  float d;
};

/// Which cells of two neighbouring columns have a plus, all bits of either half of a word: the own
/// term is larger than that of the column with a minus. Terms of bf16 are compared as they were
/// given, two at once.
template <class T>
struct SideTerms {
  using Own = float;
  using Column = float;
  using Pair = float2;
  __device__ static Own own(float term) { return term; }
  __device__ static float term_of(Own own) { return own; }
  __device__ static Column column(float minus_term) { return minus_term; }
  __device__ static float widened(Column minus_term) { return minus_term; }
  __device__ static std::uint32_t plus(Own own, const Pair& minus_terms) {
    return signs_over_halves(minus_terms.x - own, minus_terms.y - own);
  }
};
template <>
struct SideTerms<__nv_bfloat16> {
  using Own = std::uint32_t;  ///< twice
  using Column = __nv_bfloat16;
  using Pair = std::uint32_t;
  // To powers of two and back a number of bf16 is the same.
  __device__ static Own own(float term) {
    return packed<__nv_bfloat16>(term * ln_of_2, term * ln_of_2);
  }
  __device__ static float term_of(Own own) { return unpacked<__nv_bfloat16>(own).x * log2_of_e; }
  __device__ static Column column(float minus_term) {
    return __float2bfloat16_rn(minus_term * ln_of_2);
  }
  __device__ static float widened(Column minus_term) {
    return __bfloat162float(minus_term) * log2_of_e;
  }
  __device__ static std::uint32_t plus(Own own, Pair minus_terms) {
    return __hgt2_mask(reinterpret_cast<const __nv_bfloat162&>(own),
                       reinterpret_cast<const __nv_bfloat162&>(minus_terms));
  }
};

/// A vertex of the window: a target by rows, whose weights are relative to its log_sum, or a
/// source.
template <class T, bool by_rows>
struct GatOwn;
template <class T>
struct GatOwn<T, true> {
  typename SideTerms<T>::Own side = {};
  float log_sum = 0;

  __device__ float term() const { return SideTerms<T>::term_of(side); }
  /// -inf for rows without edges, which nothing is computed for.
  __device__ float shift() const { return log_sum == -cuda::infinity ? 0 : term() - log_sum; }
  __device__ bool fails(float) const { return is_extreme_own_exponent(shift()); }
  __device__ float factor() const { return power_of_2(shift()); }
  __device__ GatRowState state(float slope, float d) const {
    return {0.0f - term(), term() - log_sum, fmaf(slope, term(), -log_sum), d};
  }
};
template <class T>
struct GatOwn<T, false> {
  typename SideTerms<T>::Own side = {};

  __device__ float term() const { return SideTerms<T>::term_of(side); }
  /// A slope may be of any size.
  __device__ bool fails(float slope) const {
    return is_extreme_own_exponent(term()) || is_extreme_own_exponent(slope * term());
  }
  __device__ float factor() const { return power_of_2(term()); }
  __device__ float sloped_factor(float slope) const { return power_of_2(slope * term()); }
};

/// The exponent of an edge's weight, and its side.
struct GatExponents {
  float exponent;
  bool plus;
};

/// A number in two parts, the high one in the low half; and the parts of two lanes side by side.
__device__ inline std::uint32_t two_parts(float number) {
  const PackedTwice<__nv_bfloat16> parts(number, 0.0f);
  return __byte_perm(parts.high, parts.low, 0x5410);
}
struct PairOfParts {
  std::uint32_t high, low;

  /// Of this lane, which is even, and the next.
  __device__ explicit PairOfParts(float number) {
    const std::uint32_t own = two_parts(number);
    const std::uint32_t other = __shfl_xor_sync(~0u, own, 1);
    high = __byte_perm(own, other, 0x5410);
    low = __byte_perm(own, other, 0x7632);
  }
};

/// Whether one of the columns of a tile has an extreme factor, by warps of columns, or an own
/// vertex that came with it, by the other warps.
template <int heads>
struct ExtremeFactors {
  int of_warps[heads][2];
  int own[2];

  __device__ void find(int h, int column, bool extreme) {
    const int any = __any_sync(~0u, extreme);
    if (column % 32 == 0) of_warps[h][column / 32] = any;
  }
  __device__ void find_own(int row, bool extreme) {
    const int any = __any_sync(~0u, extreme);
    if (row % 32 == 0) own[row / 32] = any;
  }
  __device__ bool any() const {
    int any = 0;
#pragma unroll
    for (const auto& of_head : of_warps) any |= of_head[0] | of_head[1];
    return any != 0;
  }
  __device__ bool any_own() const { return (own[0] | own[1]) != 0; }
};

/// Columns that are sources: by rows.
template <class T, int heads>
struct GatSourceColumns {
  using Sides = SideTerms<T>;
  using Own = GatOwn<T, true>;
  struct alignas(8) Factors {
    std::uint32_t plus_high, plus_low;
  };
  Factors factors[heads][tiles::tile_columns / 2];
  alignas(8) typename Sides::Column minus_term[heads][tiles::tile_columns];  ///< 0 - r, as minus_l
  ExtremeFactors<heads> extreme;
  alignas(8) Own own[heads == 1 ? tall_attention_height : 1];

  __device__ void put(int h, int column, float r, float) {
    minus_term[h][column] = Sides::column(0.0f - r);
    const PairOfParts plus(power_of_2(r));
    if (column % 2 == 0) factors[h][column / 2] = {plus.high, plus.low};
    extreme.find(h, column, is_extreme_exponent(r));
  }
  __device__ void put_own(int row, float term, float log_sum, float slope) requires(heads == 1) {
    const Own of_row = {Sides::own(term), log_sum};
    own[row] = of_row;
    extreme.find_own(row, of_row.fails(slope));
  }

  /// Ones.
  __device__ static void load_numbers(std::uint32_t (&numbers)[2], int, int) {
    numbers[0] = numbers[1] = packed<__nv_bfloat16>(1.0f, 1.0f);
  }
  __device__ GatExponents exponents(int h, int column, const Own& of_row, float) const {
    const float minus_r = Sides::widened(minus_term[h][column]);
    // Edges with a minus do not count by rows.
    return {of_row.shift() - minus_r, minus_r - of_row.term() < 0};
  }
};

/// Columns that are targets: by columns. Their states are copied, and become factors.
template <class T, int heads>
struct GatTargetColumns {
  using Sides = SideTerms<T>;
  using Own = GatOwn<T, false>;
  using State = GatRowState;
  struct alignas(16) Factors {
    std::uint32_t plus_high, plus_low, minus_high, minus_low;
  };
  State of[heads][tiles::tile_columns];
  Factors factors[heads][tiles::tile_columns / 2];
  alignas(8) typename Sides::Column minus_term[heads][tiles::tile_columns];
  std::uint32_t d[heads][2][tiles::tile_columns / 2];  ///< high and low parts
  ExtremeFactors<heads> extreme;
  Own own[heads == 1 ? tall_attention_height : 1];

  /// By the thread that has copied the state, if it exists.
  __device__ void find_factors(int h, int column, bool exists) {
    GatRowState state = {};
    if (exists) state = of[h][column];
    minus_term[h][column] = Sides::column(state.minus_l);
    const PairOfParts plus(power_of_2(state.shift));
    const PairOfParts minus(power_of_2(state.sloped_shift));
    const PairOfParts row_dot(state.d);
    if (column % 2 == 0) {
      factors[h][column / 2] = {plus.high, plus.low, minus.high, minus.low};
      d[h][0][column / 2] = row_dot.high;
      d[h][1][column / 2] = row_dot.low;
    }
    extreme.find(h, column,
                 is_extreme_exponent(state.shift) || is_extreme_exponent(state.sloped_shift));
  }
  __device__ void put_own(int row, float term, float slope) requires(heads == 1) {
    const Own of_row = {Sides::own(term)};
    own[row] = of_row;
    extreme.find_own(row, of_row.fails(slope));
  }

  /// The high parts of D as even columns of an operand, the low ones as odd columns.
  __device__ void load_numbers(std::uint32_t (&numbers)[2], int h, int step) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::uint32_t* const from = d[h][lane / 4 % 2] + step * 8 + lane % 4;
    numbers[0] = from[0];
    numbers[1] = from[4];
  }
  __device__ GatExponents exponents(int h, int column, const Own& of_row, float slope) const {
    const GatRowState& state = of[h][column];
    const bool plus = state.minus_l - of_row.term() < 0;
    return {plus ? state.shift + of_row.term() : fmaf(slope, of_row.term(), state.sloped_shift),
            plus};
  }
};

template <class T, int heads, bool by_rows>
using GatColumns =
    std::conditional_t<by_rows, GatSourceColumns<T, heads>, GatTargetColumns<T, heads>>;

}  // namespace tessera::ops
