// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/windows/vertex_terms.cuh"

/// What the backward pass of GAT over windows of 64 rows knows of the columns of a tile.
namespace tessera::ops {

/// The parts of two lanes side by side.
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

/// Whether one of the columns of a tile has an extreme factor, or an own vertex that came with it,
/// by the warps that brought them.
struct ExtremeFactors {
  int of_columns[2], of_own[2];

  __device__ static void find(int (&of_warps)[2], int place, bool extreme) {
    const int any = __any_sync(~0u, extreme);
    if (place % 32 == 0) of_warps[place / 32] = any;
  }
  __device__ bool any() const { return (of_columns[0] | of_columns[1]) != 0; }
  __device__ bool any_own() const { return (of_own[0] | of_own[1]) != 0; }
};

/// Columns that are sources: by rows.
template <class T>
struct GatSourceColumns {
  static constexpr bool wants_log_sums = true;
  using Sides = SideTerms<T>;
  using Own = GatOwn<T, true>;
  struct alignas(8) Factors {
    std::uint32_t plus_high, plus_low;
  };
  Factors factors[tiles::tile_columns / 2];
  alignas(8) typename Sides::Column minus_term[tiles::tile_columns];  ///< 0 - r, as minus_l
  ExtremeFactors extreme;
  alignas(8) Own own[tall_window_height];

  __device__ void put(int, int column, float r, float) {
    minus_term[column] = Sides::column(0.0f - r);
    const PairOfParts plus(power_of_2(r));
    if (column % 2 == 0) factors[column / 2] = {plus.high, plus.low};
    extreme.find(extreme.of_columns, column, is_extreme_exponent(r));
  }
  __device__ void put_own(int row, float term, float log_sum, float slope) {
    const Own of_row = {Sides::own(term), log_sum};
    own[row] = of_row;
    extreme.find(extreme.of_own, row, of_row.fails(slope));
  }

  /// Ones.
  __device__ static void load_numbers(std::uint32_t (&numbers)[2], int) {
    numbers[0] = numbers[1] = packed<__nv_bfloat16>(1.0f, 1.0f);
  }
  __device__ GatExponents exponents(int column, const Own& of_row, float) const {
    const float minus_r = Sides::widened(minus_term[column]);
    // Edges with a minus do not count by rows.
    return {of_row.shift() - minus_r, minus_r - of_row.term() < 0};
  }
};

/// Columns that are targets: by columns. Their states are copied, and become factors.
template <class T>
struct GatTargetColumns {
  static constexpr bool wants_log_sums = false;
  using Sides = SideTerms<T>;
  using Own = GatOwn<T, false>;
  using State = GatRowState;
  struct alignas(16) Factors {
    std::uint32_t plus_high, plus_low, minus_high, minus_low;
  };
  State of[1][tiles::tile_columns];
  Factors factors[tiles::tile_columns / 2];
  alignas(8) typename Sides::Column minus_term[tiles::tile_columns];
  std::uint32_t d[2][tiles::tile_columns / 2];  ///< high and low parts
  ExtremeFactors extreme;
  Own own[tall_window_height];

  /// By the thread that has copied the state, if it exists.
  __device__ void find_factors(int column, bool exists) {
    GatRowState state = {};
    if (exists) state = of[0][column];
    minus_term[column] = Sides::column(state.minus_l);
    const PairOfParts plus(power_of_2(state.shift));
    const PairOfParts minus(power_of_2(state.sloped_shift));
    const PairOfParts row_dot(state.d);
    if (column % 2 == 0) {
      factors[column / 2] = {plus.high, plus.low, minus.high, minus.low};
      d[0][column / 2] = row_dot.high;
      d[1][column / 2] = row_dot.low;
    }
    extreme.find(extreme.of_columns, column,
                 is_extreme_exponent(state.shift) || is_extreme_exponent(state.sloped_shift));
  }
  __device__ void put_own(int row, float term, float, float slope) {
    const Own of_row = {Sides::own(term)};
    own[row] = of_row;
    extreme.find(extreme.of_own, row, of_row.fails(slope));
  }

  /// The high parts of D as even columns of an operand, the low ones as odd columns.
  __device__ void load_numbers(std::uint32_t (&numbers)[2], int step) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const std::uint32_t* const from = d[lane / 4 % 2] + step * 8 + lane % 4;
    numbers[0] = from[0];
    numbers[1] = from[4];
  }
  __device__ GatExponents exponents(int column, const Own& of_row, float slope) const {
    const GatRowState& state = of[0][column];
    const bool plus = state.minus_l - of_row.term() < 0;
    return {plus ? state.shift + of_row.term() : fmaf(slope, of_row.term(), state.sloped_shift),
            plus};
  }
};

template <class T, bool by_rows>
using GatColumns = std::conditional_t<by_rows, GatSourceColumns<T>, GatTargetColumns<T>>;

}  // namespace tessera::ops
