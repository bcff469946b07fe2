// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "ops/attention/cuda/tall/gat_vertices.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"

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
