// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstring>
#include <type_traits>

#include "ops/attention/cuda/tall/gat_vertices.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"

/// What the backward pass of GAT with factors in fp16 knows of the columns of a tile, as lanes meet
/// it: lane 4 g + q has to do with columns 2q, 2q + 1, 2q + 8 and 2q + 9 of a step.
namespace tessera::ops {

/// Factors are times 2^7: those that are not extreme (gat_vertices.cuh) are then normal numbers of
/// fp16.
inline constexpr float packed_factor_exponent = 7;
inline constexpr float packed_factor_unit = 0x1p-7f;

__device__ inline __half packed_factor(float exponent) {
  return __float2half_rn(power_of_2(exponent + packed_factor_exponent));
}

/// Of the four columns of a lane, in words of two neighbours; a column's place there.
struct LaneColumns {
  int step, q, half;

  __device__ explicit LaneColumns(int column)
      : step(column >> 4), q(column >> 1 & 3), half((column >> 2 & 2) | (column & 1)) {
    static_assert(tiles::step_columns == 16);
  }
};

/// Whether something is out of range in a tile, by the warps that brought it.
struct alignas(16) WarpFlags {
  int of_warps[tall_attention_threads / 32];

  __device__ void set(bool flag) {
    const int any = __any_sync(~0u, flag);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = any;
  }
  /// In addition to what was set.
  __device__ void add(bool flag) {
    if (__any_sync(~0u, flag) != 0 && threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = 1;
  }
  __device__ bool any() const {
    const int4 all = *reinterpret_cast<const int4*>(of_warps);
    return (all.x | all.y | all.z | all.w) != 0;
  }
};

/// Columns that are sources: by rows.
template <int heads>
struct PackedSourceColumns {
  using Sides = SideTerms<__nv_bfloat16>;
  static constexpr int steps = tiles::tile_columns / tiles::step_columns;
  struct alignas(16) Cells {
    __half factors[4];
    __nv_bfloat16 minus_terms[4];
  };
  Cells cells[heads][steps][4];
  WarpFlags extreme;
  WarpFlags unconverted;

  /// Threads bring every other head, from 0 or 1 on.
  __device__ void put(int h, int column, float r, float) {
    const LaneColumns at(column);
    Cells& to = cells[h][at.step][at.q];
    to.factors[at.half] = packed_factor(r);
    to.minus_terms[at.half] = Sides::column(0.0f - r);
    if (h < 2) {
      extreme.set(is_extreme_exponent(r));
    } else {
      extreme.add(is_extreme_exponent(r));
    }
  }
  __device__ bool fails() const { return extreme.any() || unconverted.any(); }

  /// In powers of two.
  __device__ float minus_term(int h, int column) const {
    const LaneColumns at(column);
    return Sides::widened(cells[h][at.step][at.q].minus_terms[at.half]);
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
    plus = packed_factor(shift);
    minus = packed_factor(sloped_shift);
    extreme = is_extreme_exponent(shift) || is_extreme_exponent(sloped_shift) ? 1 : 0;
  }
};

/// Columns that are targets: by columns.
template <int heads>
struct PackedTargetColumns {
  using State = PackedRowState;
  static constexpr int steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int groups = heads / 4;
  struct alignas(16) Factors {
    __half plus[4], minus[4];
  };
  struct alignas(8) Terms {
    __nv_bfloat16 minus_terms[4];
  };
  /// D of four heads as an operand: high and low parts are columns 2 h and 2 h + 1.
  struct alignas(8) Numbers {
    std::uint16_t d[4];
  };
  State of[heads][tiles::tile_columns];
  Factors factors[heads][steps][4];
  Terms terms[heads][steps][4];
  Numbers numbers[groups][steps][32];
  WarpFlags failing;

  /// By the thread that has copied the state, if it exists. Returns whether factors do not serve.
  __device__ bool find_factors(int h, int column, bool exists, float d_factor) {
    const LaneColumns at(column);
    uint4 words = {};
    if (exists) words = *reinterpret_cast<const uint4*>(&of[h][column]);
    State state;
    memcpy(&state, &words, sizeof(state));
    Factors& to = factors[h][at.step][at.q];
    to.plus[at.half] = state.plus;
    to.minus[at.half] = state.minus;
    terms[h][at.step][at.q].minus_terms[at.half] = state.minus_l;
    const float d = state.d * d_factor;
    const __half high = __float2half_rn(d);
    put_numbers(h, at, __half_as_ushort(high),
                __half_as_ushort(__float2half_rn(d - __half2float(high))));
    return state.extreme != 0;
  }
  /// The same of D alone, in two parts of bf16.
  __device__ void restore_numbers(int h, int column, bool exists) {
    const std::uint32_t parts = exists ? two_parts(of[h][column].d) : 0;
    put_numbers(h, LaneColumns(column), static_cast<std::uint16_t>(parts & 0xffffu),
                static_cast<std::uint16_t>(parts >> 16));
  }
  __device__ bool fails() const { return failing.any(); }

 private:
  __device__ void put_numbers(int h, const LaneColumns& at, std::uint16_t high,
                              std::uint16_t low) {
    Numbers* const to = &numbers[h / 4][at.step][h % 4 * 8 + at.q];
    to[0].d[at.half] = high;
    to[4].d[at.half] = low;
  }
};

template <int heads, bool by_rows>
using PackedColumns =
    std::conditional_t<by_rows, PackedSourceColumns<heads>, PackedTargetColumns<heads>>;

}  // namespace tessera::ops
