// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstring>
#include <type_traits>

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/packed_units.cuh"
#include "ops/windows/vertex_terms.cuh"

/// What the backward pass of GAT with factors in fp16 knows of the columns of a tile, where lanes
/// meet it (LaneColumns).
namespace tessera::ops {

/// Factors are times 2^7: those that are not extreme (vertex_terms.cuh) are then normal numbers of
/// fp16.
inline constexpr float packed_factor_exponent = 7;
inline constexpr float packed_factor_unit = 0x1p-7f;

__device__ inline float packed_factor(float exponent) {
  return power_of_2(exponent + packed_factor_exponent);
}

/// Columns that are sources: by rows.
template <int heads>
struct PackedSourceColumns {
  using WithRows = void;
  using T = __nv_bfloat16;
  struct alignas(16) Cells {
    std::uint32_t factors[2];
    std::uint32_t minus_terms[2];  ///< as they were given
  };
  Cells cells[heads][lane_places];
  WarpFlags extreme;
  WarpFlags failing;  ///< of rows

  /// The terms of two neighbouring columns, the first of them even. Returns whether they serve.
  __device__ bool put(int h, int column, T even, T odd) {
    const LaneColumns place(column);
    Cells& to = cells[h][place.at];
    const float r[2] = {cuda::widen(even) * log2_of_e, cuda::widen(odd) * log2_of_e};
    to.factors[place.word] = packed<__half>(packed_factor(r[0]), packed_factor(r[1]));
    const __nv_bfloat162 both(even, odd);
    to.minus_terms[place.word] = reinterpret_cast<const std::uint32_t&>(both) ^ 0x80008000u;
    return !is_extreme_exponent(r[0]) && !is_extreme_exponent(r[1]);
  }
  __device__ bool fails() const { return extreme.any() || failing.any(); }

  /// In powers of two.
  __device__ float minus_term(int h, int column) const {
    const LaneColumns place(column);
    const float2 both = unpacked<T>(cells[h][place.at].minus_terms[place.word]);
    return gat_power(column % 2 == 0 ? both.x : both.y);
  }
};

/// What the sweep over rows leaves of a target and head.
struct alignas(16) PackedRowState {
  __nv_bfloat16 minus_l;  ///< as it was given
  __half plus, minus;     ///< factors
  std::uint16_t extreme;  ///< != 0: they do not serve
  float d;
  float log_sum;  ///< in powers of two

  PackedRowState() = default;
  /// Of a term in powers of two.
  __device__ PackedRowState(float l, float log_sum_of_row, float slope, float d_of_row)
      : minus_l(SideTerms<__nv_bfloat16>::column(0.0f - l)), d(d_of_row), log_sum(log_sum_of_row) {
    // A row without edges may stand where a step has no column.
    const bool has_edges = log_sum != -cuda::infinity;
    const float shift = has_edges ? l - log_sum : 0;
    const float sloped_shift = has_edges ? fmaf(slope, l, -log_sum) : 0;
    plus = __float2half_rn(packed_factor(shift));
    minus = __float2half_rn(packed_factor(sloped_shift));
    extreme = is_extreme_exponent(shift) || is_extreme_exponent(sloped_shift) ? 1 : 0;
  }
  /// At once.
  __device__ void store(PackedRowState* to) const {
    uint4 words;
    memcpy(&words, this, sizeof(words));
    *reinterpret_cast<uint4*>(to) = words;
  }
};

/// Columns that are targets: by columns. Threads copy the states of neighbouring columns and a
/// head.
template <int heads>
struct PackedTargetColumns {
  using WithRows = void;
  using State = PackedRowState;
  static constexpr int groups = heads / 4;
  struct alignas(16) Factors {
    std::uint32_t plus[2], minus[2];
  };
  struct alignas(8) Pairs {
    std::uint32_t words[2];
  };
  State of[tiles::tile_columns][heads];
  Factors factors[heads][lane_places];
  Pairs minus_terms[heads][lane_places];
  /// D of four heads as operands: of every step its columns, of which 2 h and 2 h + 1 are high and
  /// low parts, by q; and some more, so that groups do not begin in the same bank.
  Pairs numbers[groups][tiles::tile_columns * 2 + 2];
  WarpFlags failing;

  /// Of two neighbouring columns, the first of them even, by the thread that has copied their
  /// states, if they exist. Returns whether their factors serve.
  __device__ bool find_factors(int h, int column, bool exist, float d_factor) {
    const LaneColumns place(column);
    State states[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint4 words = {};
      if (exist) words = *reinterpret_cast<const uint4*>(&of[column + i][h]);
      memcpy(&states[i], &words, sizeof(words));
    }
    Factors& to = factors[h][place.at];
    to.plus[place.word] = pair(states[0].plus, states[1].plus);
    to.minus[place.word] = pair(states[0].minus, states[1].minus);
    minus_terms[h][place.at].words[place.word] = pair(states[0].minus_l, states[1].minus_l);
    put_numbers<__half>(h, place, states[0].d * d_factor, states[1].d * d_factor);
    return (states[0].extreme | states[1].extreme) == 0;
  }
  /// The same of D alone, in two parts of bf16.
  __device__ void restore_numbers(int h, int column, bool exist) {
    put_numbers<__nv_bfloat16>(h, LaneColumns(column), exist ? of[column][h].d : 0,
                               exist ? of[column + 1][h].d : 0);
  }
  __device__ bool fails() const { return failing.any(); }

 private:
  template <class Number>
  __device__ static std::uint32_t pair(Number even, Number odd) {
    std::uint16_t halves[2];
    memcpy(halves, &even, 2);
    memcpy(halves + 1, &odd, 2);
    return halves[0] | std::uint32_t{halves[1]} << 16;
  }
  template <class Part>
  __device__ void put_numbers(int h, const LaneColumns& place, float even, float odd) {
    const PackedTwice<Part> parts(even, odd);
    // 32 lanes a step.
    Pairs* const to = numbers[h / 4] + (place.at / 4 * 32 + h % 4 * 8 + place.at % 4);
    to[0].words[place.word] = parts.high;
    to[4].words[place.word] = parts.low;
  }
};

template <int heads, bool by_rows>
using PackedColumns =
    std::conditional_t<by_rows, PackedSourceColumns<heads>, PackedTargetColumns<heads>>;

}  // namespace tessera::ops
