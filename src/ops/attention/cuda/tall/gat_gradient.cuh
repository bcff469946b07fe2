// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat_gradient_columns.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/attention/cuda/tall/matrix_rows.cuh"

/// The backward pass of GAT with wide heads over windows of 64 rows, of bf16 or, in two parts,
/// fp32. With P the weights, s the slope, D = dO . O of a target, and sums over edges of which
/// those with a plus have l[i] + r[j] > 0,
///
///     dl[i] = (1 - s) (dO[i] . sum+ P V[j]  -  D[i] sum+ P)          as all P of a row make 1
///     dV[j] = sum+ P dO[i] + sum- P dO[i]
///     dr[j] = V[j] . (sum+ P dO[i] + s sum- P dO[i])  -  sum+ P D[i]  -  s sum- P D[i]
///
/// so that no edge needs a product of its own. On either side P is a factor of the target times one
/// of the source: that of the own vertex comes out of the sum, and what is left to multiply the
/// gathered rows by is the factor of their column where there is an edge and the sign fits. Where a
/// factor is too large for that, the rest of the piece takes an exponential per cell.
///
/// The sweep over windows of targets gives dl, and leaves the states of targets for the other, over
/// windows of sources, which gives dr and dV.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class GatGradient
    : public GatheredWindows<GatGradient<T, width, by_rows>, T, width, 1, 0, GatColumns<by_rows>> {
  using Windows = GatheredWindows<GatGradient, T, width, 1, 0, GatColumns<by_rows>>;

 public:
  using Windows::heads;
  using Windows::Windows;
  static_assert(heads == 1);
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;

  __device__ void begin_piece(const tiles::Piece& piece) {
    row_ = std::int64_t{piece.first_row} + place_of(0);
    bool fails = false;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      own_[row] = {};
      if (place_of(row) >= piece.num_rows) continue;
      own_[row].term = own_term(row);
      if constexpr (by_rows) {
        own_[row].log_sum =
            __ldg(launch_.log_sum + (row_ + 8 * row) * launch_.log_sum_stride + first_head()) *
            log2_of_e;
      }
      fails = fails || own_[row].fails();
    }
    // All warps of a group go the same way.
    by_exponentials_ = __syncthreads_or(fails ? 1 : 0) != 0;
#pragma unroll
    for (Side& side : sides_) side.clear();
  }

  /// Factors of the columns that have arrived.
  __device__ void cut(int turn, int num_rows) {
    Windows::cut(turn, num_rows);
    if constexpr (!by_rows) {
      const auto column = static_cast<int>(threadIdx.x);
      if (column < tiles::tile_columns) columns_of(turn).find_factors(column, column < num_rows);
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).has_large_factor()) {
      take_own_factors();
      by_exponentials_ = true;
    }
    if (by_exponentials_) {
#pragma unroll 1
      for (int step = 0; step < num_steps; ++step) {
        Weights weights[num_sides];
        find_exponentials(weights, columns_of(turn), pattern, step);
        multiply_step(weights, turn, step);
      }
    } else if (num_steps == tile_steps) {
#pragma unroll
      for (int step = 0; step < tile_steps; step += steps_at_once) {
        Weights weights[steps_at_once][num_sides];
#pragma unroll
        for (int k = 0; k < steps_at_once; ++k) {
          find_weights(weights[k], columns_of(turn), pattern, step + k);
        }
        begin();
#pragma unroll
        for (int k = 0; k < steps_at_once; ++k) ask(weights[k], turn, step + k);
        Products::commit();
#pragma unroll
        for (int k = 0; k < steps_at_once; ++k) add_numbers(weights[k], turn, step + k);
        wait();
      }
    } else {
#pragma unroll 1
      for (int step = 0; step < num_steps; ++step) {
        Weights weights[num_sides];
        find_weights(weights, columns_of(turn), pattern, step);
        multiply_step(weights, turn, step);
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    if (!by_exponentials_) take_own_factors();
    const BlockColumns heads_of_block(first_head(), 1, static_cast<int>(launch_.heads));
    constexpr int num_matrices = by_rows ? 1 : 2;
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
      const bool exists = place_of(row) < piece.num_rows;
      float gradient;
      if constexpr (by_rows) {
        gradient = target_gradient(row, exists);
      } else {
        gradient = source_gradient(row, exists);
#pragma unroll
        for (int unit = 0; unit < units; ++unit) {
          const int at = 4 * unit + 2 * row;
          results.store(piece, 1, place_of(row), unit * 8 + lane() % 4 * 2,
                        sides_[0].rows[at] + sides_[1].rows[at],
                        sides_[0].rows[at + 1] + sides_[1].rows[at + 1]);
        }
      }
      if (lane() % 4 == 0) results.store(piece, 0, place_of(row), gradient);
    }
    results.finish(piece);
  }

  __device__ void end() const {}

 private:
  using typename Windows::Part;
  using Products = MatrixRows<T, width>;
  using Weights = StepWeights<Part>;
  using Columns = GatColumns<by_rows>;
  using Windows::all_features;
  using Windows::columns_of;
  using Windows::first_feature;
  using Windows::first_head;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::rows_of;
  using Windows::tile_steps;
  using Windows::units;
  static constexpr int num_sides = by_rows ? 1 : 2;  ///< with a plus, with a minus
  static constexpr int steps_at_once = by_rows ? 4 : 2;

  /// The sums over the edges of one side, for the two rows of this lane.
  struct Side {
    typename Products::Sums rows;  ///< of gathered rows
    float numbers[4];              ///< of 1 by rows, of D by columns, in two parts each

    __device__ void clear() {
#pragma unroll
      for (float& sum : rows) sum = 0;
#pragma unroll
      for (float& sum : numbers) sum = 0;
    }
    __device__ void scale(int row, float factor) {
#pragma unroll
      for (int i = 2 * row; i < width / 2; i += 4) {
        rows[i] *= factor;
        rows[i + 1] *= factor;
      }
      numbers[2 * row] *= factor;
      numbers[2 * row + 1] *= factor;
    }
  };

  __device__ static int place_of(int row) { return first_row() + lane() / 4 + 8 * row; }

  /// Of a row of this lane, in powers of two.
  __device__ float own_term(int row) const {
    return log2_of_e * cuda::widen(__ldg(static_cast<const T*>(launch_.target) +
                                         (row_ + 8 * row) * launch_.target_stride + first_head()));
  }
  __device__ void take_own_factors() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sides_[0].scale(row, own_[row].factor());
      if constexpr (!by_rows) sides_[1].scale(row, own_[row].sloped_factor(launch_.slope));
    }
  }

  // Products of the weights of a step.

  __device__ void begin() {
#pragma unroll
    for (Side& side : sides_) Products::begin(side.rows);
  }
  __device__ void ask(const Weights (&weights)[num_sides], int turn, int step) {
#pragma unroll
    for (int side = 0; side < num_sides; ++side) {
      Products::add(sides_[side].rows, weights[side], rows_of(turn, 0), step);
    }
  }
  __device__ void wait() {
#pragma unroll
    for (Side& side : sides_) Products::wait(side.rows);
  }
  __device__ void add_numbers(const Weights (&weights)[num_sides], int turn, int step) {
    std::uint32_t numbers[2];
    columns_of(turn).load_numbers(numbers, step);
#pragma unroll
    for (int side = 0; side < num_sides; ++side) {
      cuda::multiply_16x8<Part>(sides_[side].numbers, weights[side].low, numbers);
      cuda::multiply_16x8<Part>(sides_[side].numbers, weights[side].high, numbers);
    }
  }
  __device__ void multiply_step(const Weights (&weights)[num_sides], int turn, int step) {
    begin();
    ask(weights, turn, step);
    Products::commit();
    add_numbers(weights, turn, step);
    wait();
  }

  /// Factors of columns where there is an edge of that side.
  __device__ void find_weights(Weights (&weights)[num_sides], const Columns& columns,
                               const TilePattern& pattern, int step) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = step * 16 + half * 8 + lane() % 4 * 2;
      const float2 minus_terms = *reinterpret_cast<const float2*>(&columns.minus_term[column]);
      const auto factors = columns.factors[column / 2];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int place = 2 * half + row;
        const std::uint32_t edges = pattern.mask(4 * step + place);
        const std::uint32_t plus =
            signs_over_halves(minus_terms.x - own_[row].term, minus_terms.y - own_[row].term);
        weights[0].high[place] = factors.plus_high & edges & plus;
        weights[0].low[place] = factors.plus_low & edges & plus;
        if constexpr (!by_rows) {
          weights[1].high[place] = factors.minus_high & edges & ~plus;
          weights[1].low[place] = factors.minus_low & edges & ~plus;
        }
      }
    }
#pragma unroll
    for (Weights& side : weights) {
      cuda::keep_in_place(side.high);
      cuda::keep_in_place(side.low);
    }
  }
  /// The weights of edges themselves, with factors of both vertices.
  __device__ void find_exponentials(Weights (&weights)[num_sides], const Columns& columns,
                                    const TilePattern& pattern, int step) const {
    const StepPattern cells(pattern, step);
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      float pairs[2][2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const GatExponents exponents =
            columns.exponents(column + odd, own_[place % 2], launch_.slope);
        const bool plus = exponents.plus;
        pairs[0][odd] = plus ? cells.masked(power_of_2(exponents.exponent), place, odd) : 0.0f;
        pairs[1][odd] = plus ? 0.0f : cells.masked(power_of_2(exponents.exponent), place, odd);
      }
#pragma unroll
      for (int side = 0; side < num_sides; ++side) {
        weights[side].set(place, pairs[side][0], pairs[side][1]);
      }
    }
#pragma unroll
    for (Weights& side : weights) {
      cuda::keep_in_place(side.high);
      cuda::keep_in_place(side.low);
    }
  }

  // Results of a row of this lane.

  /// Over the four lanes of a row.
  __device__ static float over_lanes(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }
  /// The two features of this lane in a unit of eight.
  __device__ float2 pair_at(const void* matrix, std::int64_t stride, int row, int unit) const {
    const T* const from = static_cast<const T*>(matrix) + (row_ + 8 * row) * stride +
                          first_feature() + unit * 8 + lane() % 4 * 2;
    using Pair = cuda::Vector<T, 2 * static_cast<int>(sizeof(T))>;
    float pair[2];
    Pair::load(from).widen_to(pair);
    return {pair[0], pair[1]};
  }
  __device__ float target_gradient(int row, bool exists) const {
    float dot = 0, d = 0;
    if (exists) {
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const float2 gradient = pair_at(launch_.own_values, launch_.own_values_stride, row, unit);
        const float2 output = pair_at(launch_.own_output, launch_.own_output_stride, row, unit);
        const float* const sums = sides_[0].rows + 4 * unit + 2 * row;
        dot = fmaf(gradient.x, sums[0], fmaf(gradient.y, sums[1], dot));
        d = fmaf(gradient.x, output.x, fmaf(gradient.y, output.y, d));
      }
    }
    dot = over_lanes(dot);
    d = over_lanes(d);
    if (exists && lane() % 4 == 0) {
      static_cast<GatRowState*>(
          launch_.row_state)[(row_ + 8 * row) * launch_.heads + first_head()] =
          own_[row].state(launch_.slope, d);
    }
    // Products with ones are the same in all columns.
    return (1 - launch_.slope) * (dot - d * sides_[0].numbers[2 * row]);
  }
  __device__ float source_gradient(int row, bool exists) const {
    const float slope = launch_.slope;
    float dot = 0;
    if (exists) {
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const float2 value = pair_at(launch_.own_values, launch_.own_values_stride, row, unit);
        const int at = 4 * unit + 2 * row;
        dot = fmaf(value.x, fmaf(slope, sides_[1].rows[at], sides_[0].rows[at]), dot);
        dot = fmaf(value.y, fmaf(slope, sides_[1].rows[at + 1], sides_[0].rows[at + 1]), dot);
      }
    }
    // The high and the low part of D stand side by side.
    const float plus_d = sides_[0].numbers[2 * row] + sides_[0].numbers[2 * row + 1];
    const float minus_d = sides_[1].numbers[2 * row] + sides_[1].numbers[2 * row + 1];
    return over_lanes(dot) - plus_d - slope * minus_d;
  }

  std::int64_t row_;  ///< row g of this lane
  GatOwn<by_rows> own_[2];
  bool by_exponentials_ = false;
  Side sides_[num_sides];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
template <class T, int width, bool by_rows>
inline constexpr int gat_gradient_blocks = width == 128 ? (by_rows && sizeof(T) == 2 ? 3 : 2)
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
