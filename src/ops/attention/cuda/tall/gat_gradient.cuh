// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/attention/cuda/tall/tile_products.cuh"

/// The backward pass of GAT with wide heads over windows of 64 rows, of bf16 or, in two parts,
/// fp32. With P the weights, D = dO . O of a target, s the slope, and sums over edges of which
/// those with a plus have l[i] + r[j] > 0,
///
///     dl[i] = (1 - s) sum+ of P (dO[i] . V[j] - D[i])          as P (dO . V - D) of a row makes 0
///     dr[j] = s sum of P (dO[i] . V[j] - D[i])  +  (1 - s) sum+ of the same
///     dV[j] = sum of P dO[i]
///
/// The sweep over windows of targets gives dl, and leaves the states of targets for the other, over
/// windows of sources, which gives dr and dV. The window's own rows, dO or V, lie in shared memory,
/// V or dO is gathered. Weights come again from the terms and `log_sum` by an exponential per cell:
/// they are at most 1, so that no cell needs a base.
namespace tessera::ops {

/// Of a target and head, in powers of two: -l, what r is added to with a plus, what s r is added to
/// with a minus; and -D.
struct alignas(16) GatRowState {
  float minus_l;
  float shift;
  float sloped_shift;
  float minus_d;
};

/// Of sources, likewise: r.
struct TermColumns {
  float r[tiles::tile_columns];

  __device__ void put(int column, float term, float) { r[column] = term; }
};

template <bool by_rows>
using GatColumns = std::conditional_t<by_rows, TermColumns, StateColumns<GatRowState, 1>>;

template <class T, int width, bool by_rows>
class GatGradient
    : public GatheredWindows<GatGradient<T, width, by_rows>, T, width, 1, 1, GatColumns<by_rows>> {
  using Windows = GatheredWindows<GatGradient, T, width, 1, 1, GatColumns<by_rows>>;

 public:
  using Windows::heads;
  using Windows::Windows;
  static_assert(heads == 1);

  /// Each warp brings its own 16 rows and what belongs to them.
  __device__ void begin_piece(const tiles::Piece& piece) {
    __syncwarp();
    bring_own(piece);
    __syncwarp();
    sum_[0] = sum_[1] = 0;
    if constexpr (!by_rows) {
      plus_sum_[0] = plus_sum_[1] = 0;
      values_ = {};
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      float dots[4][4];
      begin_dots(dots, turn, step);
      Products::add_dots(dots, cuda::shared_address(own_memory(0)), first_row(), rows_of(turn, 0),
                         0, step);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        // Rows that the tile does not have are no numbers to multiply by 0.
        if (step + k >= num_steps) break;
        if constexpr (by_rows) {
          add_to_targets(turn, step + k, cells[k], dots + 2 * k);
        } else {
          add_to_sources(turn, step + k, cells[k], dots + 2 * k);
        }
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) const {
    constexpr int num_matrices = by_rows ? 1 : 2;
    const BlockColumns heads_of_block(first_head(), 1, static_cast<int>(launch_.heads));
    GradientMatrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, 1.0f, heads_of_block};
    if constexpr (!by_rows) {
      matrices[0].slot_at = all_features();
      matrices[1] = {launch_.output, launch_.output_stride, 1.0f,
                     BlockColumns(first_feature(), width, all_features())};
    }
    const GradientResults<T, num_matrices> results(launch_, matrices);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = first_row() + lane() / 4 + 8 * row;
      const float slope = launch_.slope;
      float gradient;
      if constexpr (by_rows) {
        // What is not finite stays so, even in a row without a plus.
        gradient = fmaf(0.0f, own_[row].minus_d, (1 - slope) * over_lanes(sum_[row]));
      } else {
        gradient = over_lanes(fmaf(slope, sum_[row], (1 - slope) * plus_sum_[row]));
#pragma unroll
        for (int unit = 0; unit < units; ++unit) {
          const auto& pair = values_.features[unit];
          results.store(piece, 1, place, unit * 8 + lane() % 4 * 2, pair[2 * row],
                        pair[2 * row + 1]);
        }
      }
      if (lane() % 4 == 0) results.store(piece, 0, place, gradient);
    }
    results.finish(piece);
  }

  __device__ void end() const {}

 private:
  using typename Windows::Part;
  using typename Windows::Planes;
  using Products = TileProducts<T, width>;
  using Windows::all_features;
  using Windows::columns_of;
  using Windows::first_feature;
  using Windows::first_head;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::own_memory;
  using Windows::rows_of;
  using Windows::units;

  /// Over the four lanes of a row.
  __device__ static float over_lanes(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }

  /// A warp brings so many rows at once, a unit of eight features per lane.
  static constexpr int rows_at_once = 32 / units;
  __device__ void bring_own(const tiles::Piece& piece) {
    float dots[16 / rows_at_once];
#pragma unroll
    for (int i = 0; i < 16 / rows_at_once; ++i) {
      const int place = first_row() + i * rows_at_once + lane() / units;
      const int unit = lane() % units;
      dots[i] = 0;
      if (place < piece.num_rows) {
        const std::int64_t row = std::int64_t{piece.first_row} + place;
        const int feature = first_feature() + unit * 8;
        const T* const own =
            static_cast<const T*>(launch_.own_values) + row * launch_.own_values_stride + feature;
        Planes::put(own_memory(0), place, unit, own);
        if constexpr (by_rows) {
          dots[i] = dot_of_eight(own, static_cast<const T*>(launch_.own_output) +
                                          row * launch_.own_output_stride + feature);
        }
      } else {
        Planes::clear(own_memory(0), place, unit);
      }
    }
    if constexpr (by_rows) {
      find_states(piece, dots);
    } else {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        r_[row] = own_term(piece, row);
        sloped_r_[row] = launch_.slope * r_[row];
      }
    }
  }
  __device__ static float dot_of_eight(const T* a, const T* b) {
    using Features = cuda::Vector<T, 16>;
    float dot = 0;
#pragma unroll
    for (int i = 0; i < 8; i += Features::count) {
      float first[Features::count], second[Features::count];
      Features::load(a + i).widen_to(first);
      Features::load(b + i).widen_to(second);
#pragma unroll
      for (int k = 0; k < Features::count; ++k) dot = fmaf(first[k], second[k], dot);
    }
    return dot;
  }
  /// The term of one of the two rows of this lane, in powers of two; 0 of rows that do not exist.
  __device__ float own_term(const tiles::Piece& piece, int row) const {
    const int place = first_row() + lane() / 4 + 8 * row;
    if (place >= piece.num_rows) return 0;
    return log2_of_e *
           cuda::widen(__ldg(static_cast<const T*>(launch_.target) +
                             (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                             first_head()));
  }
  /// `dots` are this lane's parts of D of the rows that it has brought.
  __device__ void find_states(const tiles::Piece& piece, float (&dots)[16 / rows_at_once]) {
    float d[2];
#pragma unroll
    for (int i = 0; i < 16 / rows_at_once; ++i) {
#pragma unroll
      for (int distance = 1; distance < units; distance *= 2) {
        dots[i] += __shfl_xor_sync(~0u, dots[i], distance);
      }
      // To the lanes whose rows these are: of eight rows, 8 / rows_at_once times as many at once.
      const int row = lane() / 4;
      const float found = __shfl_sync(~0u, dots[i], row % rows_at_once * units);
      if (row / rows_at_once == i % (8 / rows_at_once)) d[i / (8 / rows_at_once)] = found;
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = first_row() + lane() / 4 + 8 * row;
      const bool exists = place < piece.num_rows;
      const std::int64_t vertex = std::int64_t{piece.first_row} + place;
      const float l = own_term(piece, row);
      float log_sum = 0;
      if (exists) {
        log_sum =
            __ldg(launch_.log_sum + vertex * launch_.log_sum_stride + first_head()) * log2_of_e;
      }
      own_[row] = {-l, l - log_sum, fmaf(launch_.slope, l, -log_sum), -d[row]};
      if (exists && lane() % 4 == 0) {
        static_cast<GatRowState*>(launch_.row_state)[vertex * launch_.heads + first_head()] =
            own_[row];
      }
    }
  }

  /// -D, which products are added to.
  __device__ void begin_dots(float (&dots)[4][4], int turn, int step) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if constexpr (by_rows) {
          dots[i][k] = own_[k / 2].minus_d;
        } else {
          dots[i][k] = columns_of(turn).of[0][step * 16 + i * 8 + lane() % 4 * 2 + k % 2].minus_d;
        }
      }
    }
  }

  /// A step's cells with a plus.
  __device__ void add_to_targets(int turn, int step, const StepPattern& pattern,
                                 const float (*dots)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = step * 16 + half * 8 + lane() % 4 * 2;
      const float2 r = *reinterpret_cast<const float2*>(&columns_of(turn).r[column]);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int row = k / 2;
        const float term = k % 2 == 0 ? r.x : r.y;
        const float weight = power_of_2(own_[row].shift + term);
        if (pattern.has(2 * half + row, k % 2) && term > own_[row].minus_l) {
          sum_[row] = fmaf(weight, dots[half][k], sum_[row]);
        }
      }
    }
  }

  /// A step's cells become weights, and those products.
  __device__ void add_to_sources(int turn, int step, const StepPattern& pattern,
                                 const float (*dots)[4]) {
    StepWeights<Part> weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      const int row = place % 2;
      float pair[2] = {0, 0};
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const GatRowState state = columns_of(turn).of[0][column + odd];
        const bool exists = pattern.has(place, odd);
        const bool plus = exists && r_[row] > state.minus_l;
        const float weight =
            power_of_2(plus ? state.shift + r_[row] : state.sloped_shift + sloped_r_[row]);
        const float dot = dots[place / 2][row * 2 + odd];
        if (exists) {
          pair[odd] = weight;
          sum_[row] = fmaf(weight, dot, sum_[row]);
        }
        if (plus) plus_sum_[row] = fmaf(weight, dot, plus_sum_[row]);
      }
      weights.set(place, pair[0], pair[1]);
    }
    Products::add_rows(values_, weights, rows_of(turn, 0), 0, step);
  }

  // Of the two rows of this lane.
  GatRowState own_[2];            ///< by rows
  float r_[2], sloped_r_[2];      ///< by columns
  float sum_[2];                  ///< by rows with a plus only
  float plus_sum_[2];             ///< by columns
  HeadSums<Part, width> values_;  ///< by columns: dV
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
template <class T, int width, bool by_rows>
inline constexpr int gat_gradient_blocks = width == 128 ? (sizeof(T) == 4 ? 2 : 3)
                                           : by_rows    ? 4
                                                        : 3;

template <class T, int width, bool by_rows>
__global__ __launch_bounds__(
    tall_attention_threads,
    (gat_gradient_blocks<T, width, by_rows>)) void differentiate_gat(const TallAttentionLaunch
                                                                         launch) {
  run_gathered_windows<GatGradient<T, width, by_rows>>(launch);
}

template <class T, bool by_rows>
constexpr WideGatFunctions make_gat_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return WideGatFunctions{gathered_function<
        GatGradient<T, tall_head_widths[first_wide_gat + i], by_rows>,
        differentiate_gat<T, tall_head_widths[first_wide_gat + i], by_rows>>()...};
  }
  (std::make_index_sequence<num_wide_gat>{});
}

}  // namespace tessera::ops
