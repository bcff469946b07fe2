// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat_gradient_columns.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/attention/cuda/tall/matrix_rows.cuh"

/// The backward pass of GAT over windows of 64 rows, of bf16 or, in two parts, fp32. With P the
/// weights, s the slope, D = dO . O of a target, and sums over edges of which those with a plus
/// have l[i] + r[j] > 0,
///
///     dl[i] = (1 - s) (dO[i] . sum+ P V[j]  -  D[i] sum+ P)          as all P of a row make 1
///     dV[j] = sum+ P dO[i] + sum- P dO[i]
///     dr[j] = V[j] . (sum+ P dO[i] + s sum- P dO[i])  -  sum+ P D[i]  -  s sum- P D[i]
///
/// so that no edge needs a product of its own. On either side P is a factor of the target times one
/// of the source: that of the own vertex comes out of the sum, and what is left to multiply the
/// gathered rows by is the factor of their column where there is an edge and the sign fits. Where a
/// factor is extreme, the rest of the piece takes an exponential per cell.
///
/// The sweep over windows of targets gives dl, and leaves the states of targets for the other, over
/// windows of sources, which gives dr and dV.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class GatGradient : public GatheredWindows<GatGradient<T, width, by_rows>, T, width, 1, 0,
                                           GatColumns<T, tall_block_heads(width), by_rows>> {
  using Windows =
      GatheredWindows<GatGradient, T, width, 1, 0, GatColumns<T, tall_block_heads(width), by_rows>>;

 public:
  using Windows::heads;
  using Windows::Windows;
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;

  __device__ void begin_piece(const tiles::Piece& piece) {
    set_rows(piece);
    bool fails = false;
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      Own& own = own_[i / 2][i % 2];
      own = {};
      if constexpr (!Windows::has_own_terms) {
        if (!exists(i / 2, i % 2)) continue;
        own.side = SideTerms<T>::own(own_term(i / 2, i % 2));
        if constexpr (by_rows) own.log_sum = own_log_sum(i / 2, i % 2);
        fails = fails || own.fails(launch_.slope);
      }
    }
    // All warps of a group go the same way.
    by_exponentials_ = !Windows::has_own_terms && __syncthreads_or(fails ? 1 : 0) != 0;
#pragma unroll
    for (Side& side : sides_) side.clear();
  }
  __device__ void take_own(int turn) {
    own_[0][0] = columns_of(turn).own[place_of(0)];
    own_[0][1] = columns_of(turn).own[place_of(1)];
    by_exponentials_ = columns_of(turn).extreme.any_own();
  }

  __device__ void expect(const WindowRows& rows) const {
    this->expect_rows(launch_.own_values, launch_.own_values_stride, rows);
    if constexpr (by_rows) {
      this->expect_rows(launch_.own_output, launch_.own_output_stride, rows);
    }
    if constexpr (!Windows::has_own_terms) {
      // Numbers of neighbouring rows lie side by side.
      if (lane() != 0 || first_row() >= rows.count) return;
      const std::int64_t row = std::int64_t{rows.first} + first_row();
      cuda::expect_in_l2(static_cast<const T*>(launch_.target) + row * launch_.target_stride +
                         first_head());
      if constexpr (by_rows) {
        cuda::expect_in_l2(launch_.log_sum + row * launch_.log_sum_stride + first_head());
      }
    }
  }

  /// Factors of the columns that have arrived.
  __device__ void cut(int turn, int num_rows) {
    Windows::cut(turn, num_rows);
    if constexpr (!by_rows) {
      const int column = Windows::column_of_thread();
#pragma unroll
      for (int i = 0; i < Windows::column_heads; ++i) {
        const int h = Windows::head_of_thread(i);
        if (h >= heads) break;
        columns_of(turn).find_factors(h, column,
                                      column < num_rows && first_head() + h < launch_.heads);
      }
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).extreme.any()) {
      take_own_factors();
      by_exponentials_ = true;
    }
    if (by_exponentials_) {
      each_step(num_steps, [&](int step, int h, Weights(&weights)[num_sides]) {
        find_exponentials(weights, columns_of(turn), h, pattern, step);
        multiply(weights, turn, h, step);
      });
    } else if constexpr (heads == 1) {
      with_constant_steps(num_steps, [&](auto steps) { add_tile<steps>(turn, pattern); });
    } else {
      each_step(num_steps, [&](int step, int h, Weights(&weights)[num_sides]) {
        find_weights(weights, columns_of(turn), h, pattern, step);
        multiply(weights, turn, h, step);
      });
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    set_rows(piece);
    if (!by_exponentials_) take_own_factors();
    constexpr int num_matrices = by_rows ? 1 : 2;
    GradientMatrix matrices[num_matrices];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, 1.0f,
                   BlockColumns(first_head(), heads, static_cast<int>(launch_.heads))};
    if constexpr (!by_rows) {
      matrices[0].slot_at = all_features();
      matrices[1] = {launch_.output, launch_.output_stride, 1.0f,
                     BlockColumns(first_feature(), features, all_features())};
    }
    const GradientResults<T, num_matrices> results(launch_, matrices);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      float gradients[2];
      if constexpr (by_rows) {
        find_target_gradients(gradients, h);
      } else {
        find_source_gradients(gradients, h);
      }
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        if constexpr (!by_rows) {
#pragma unroll
          for (int unit = 0; unit < units; ++unit) {
            const float* const plus = side(h, 0).rows + 4 * unit + 2 * row;
            const float* const minus = side(h, 1).rows + 4 * unit + 2 * row;
            results.store(piece, 1, place_of(row), h * width + unit * 8 + lane() % 4 * 2,
                          plus[0] + minus[0], plus[1] + minus[1]);
          }
        }
        if (lane() % 4 == 0) results.store(piece, 0, place_of(row), h, gradients[row]);
      }
    }
    results.finish(piece);
  }

  __device__ void end() const {}

 private:
  using typename Windows::Part;
  using Products = MatrixRows<T, width>;
  using Weights = StepWeights<Part>;
  using Columns = GatColumns<T, heads, by_rows>;
  using Own = GatOwn<T, by_rows>;
  using Windows::all_features;
  using Windows::columns_of;
  using Windows::features;
  using Windows::first_feature;
  using Windows::first_head;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::rows_of;
  using Windows::units;
  static constexpr int num_sides = by_rows ? 1 : 2;  ///< with a plus, with a minus
  /// Of one wide head the weights of several steps are found before they are multiplied.
  static constexpr int steps_at_once = 2;

  /// The sums over the edges of one side and head, for the two rows of this lane.
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
  __device__ Side& side(int h, int of) { return sides_[h * num_sides + of]; }
  __device__ const Side& side(int h, int of) const { return sides_[h * num_sides + of]; }

  // The two rows of this lane.

  __device__ static int place_of(int row) { return first_row() + lane() / 4 + 8 * row; }
  __device__ void set_rows(const tiles::Piece& piece) {
    row_ = std::int64_t{piece.first_row} + place_of(0);
    num_rows_ = piece.num_rows;
  }
  __device__ bool exists(int h, int row) const {
    return place_of(row) < num_rows_ && first_head() + h < launch_.heads;
  }
  /// In powers of two.
  __device__ float own_term(int h, int row) const {
    return gat_power(
        cuda::widen(__ldg(static_cast<const T*>(launch_.target) +
                          (row_ + 8 * row) * launch_.target_stride + first_head() + h)));
  }
  __device__ float own_log_sum(int h, int row) const {
    return log2_of_e *
           __ldg(launch_.log_sum + (row_ + 8 * row) * launch_.log_sum_stride + first_head() + h);
  }
  __device__ void take_own_factors() {
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const Own& own = own_[i / 2][i % 2];
      side(i / 2, 0).scale(i % 2, own.factor());
      if constexpr (!by_rows) side(i / 2, 1).scale(i % 2, own.sloped_factor(launch_.slope));
    }
  }

  // Products.

  template <class Body>
  __device__ void each_step(int num_steps, Body&& body) {
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        Weights weights[num_sides];
        body(step, h, weights);
      }
    }
  }
  /// The products of a step are under way while the weights of the next are found.
  template <int steps>
  __device__ void add_tile(int turn, const TilePattern& pattern) {
    Weights weights[steps][num_sides];
    begin(0);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      // There are registers for the weights of so many steps.
      if (step >= steps_at_once) Products::wait_for_all_but_last();
      find_weights(weights[step], columns_of(turn), 0, pattern, step);
      // Before the products: nobody may read their operands while they are under way.
      add_numbers(weights[step], turn, 0, step);
      Products::begin_step(weights[step]);
      ask(weights[step], turn, 0, step);
      Products::commit();
    }
    wait(0);
  }
  __device__ void multiply(const Weights (&weights)[num_sides], int turn, int h, int step) {
    add_numbers(weights, turn, h, step);
    begin(h);
    ask(weights, turn, h, step);
    Products::commit();
    wait(h);
  }
  __device__ void begin(int h) {
#pragma unroll
    for (int of = 0; of < num_sides; ++of) Products::begin(side(h, of).rows);
  }
  __device__ void ask(const Weights (&weights)[num_sides], int turn, int h, int step) {
#pragma unroll
    for (int of = 0; of < num_sides; ++of) {
      Products::add(side(h, of).rows, weights[of], rows_of(turn, 0), h, step);
    }
  }
  __device__ void wait(int h) {
#pragma unroll
    for (int of = 0; of < num_sides; ++of) Products::wait(side(h, of).rows);
  }
  __device__ void add_numbers(const Weights (&weights)[num_sides], int turn, int h, int step) {
    std::uint32_t numbers[2];
    columns_of(turn).load_numbers(numbers, h, step);
#pragma unroll
    for (int of = 0; of < num_sides; ++of) {
      cuda::multiply_16x8<Part>(side(h, of).numbers, weights[of].low, numbers);
      cuda::multiply_16x8<Part>(side(h, of).numbers, weights[of].high, numbers);
    }
  }

  // Weights.

  /// Factors of columns where there is an edge of that side.
  __device__ void find_weights(Weights (&weights)[num_sides], const Columns& columns, int h,
                               const TilePattern& pattern, int step) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pair = step * 8 + half * 4 + lane() % 4;
      using Pair = typename SideTerms<T>::Pair;
      const Pair minus_terms = reinterpret_cast<const Pair*>(columns.minus_term[h])[pair];
      const auto factors = columns.factors[h][pair];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int place = 2 * half + row;
        const std::uint32_t edges = pattern.mask(4 * step + place);
        const std::uint32_t plus = SideTerms<T>::plus(own_[h][row].side, minus_terms);
        weights[0].high[place] = factors.plus_high & edges & plus;
        weights[0].low[place] = factors.plus_low & edges & plus;
        if constexpr (!by_rows) {
          weights[1].high[place] = factors.minus_high & edges & ~plus;
          weights[1].low[place] = factors.minus_low & edges & ~plus;
        }
      }
    }
#pragma unroll
    for (Weights& of : weights) Products::keep(of);
  }
  /// The weights of edges themselves, with factors of both vertices.
  __device__ void find_exponentials(Weights (&weights)[num_sides], const Columns& columns, int h,
                                    const TilePattern& pattern, int step) const {
    const StepPattern cells(pattern, step);
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * 16 + place / 2 * 8 + lane() % 4 * 2;
      float pairs[2][2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const GatExponents exponents =
            columns.exponents(h, column + odd, own_[h][place % 2], launch_.slope);
        const float weight = cells.masked(power_of_2(exponents.exponent), place, odd);
        pairs[0][odd] = exponents.plus ? weight : 0.0f;
        pairs[1][odd] = exponents.plus ? 0.0f : weight;
      }
#pragma unroll
      for (int of = 0; of < num_sides; ++of) {
        weights[of].set(place, pairs[of][0], pairs[of][1]);
      }
    }
#pragma unroll
    for (Weights& of : weights) Products::keep(of);
  }
  // Results of a row of this lane.

  /// Over the four lanes of a row.
  __device__ static float over_lanes(float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
  }
  /// What this lane has to do with of two rows of a matrix: two features of every eight. All of it
  /// is asked for before the first is looked at; of a row that does not exist it is anything.
  struct OwnRows {
    using Pair = cuda::Vector<T, 2 * static_cast<int>(sizeof(T))>;
    Pair pairs[2][units];

    __device__ float2 at(int row, int unit) const {
      float pair[2];
      pairs[row][unit].widen_to(pair);
      return {pair[0], pair[1]};
    }
  };
  __device__ void load(OwnRows& rows, const void* matrix, std::int64_t stride, int h) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const T* from = static_cast<const T*>(matrix) + lane() % 4 * 2;
      if (exists(h, row)) from += (row_ + 8 * row) * stride + first_feature() + h * width;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        rows.pairs[row][unit] = OwnRows::Pair::load(from + unit * 8);
      }
    }
  }
  __device__ void find_target_gradients(float (&gradients)[2], int h) const {
    OwnRows of_gradient, of_output;
    load(of_gradient, launch_.own_values, launch_.own_values_stride, h);
    load(of_output, launch_.own_output, launch_.own_output_stride, h);
    float d[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float dot = 0;
      d[row] = 0;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const float2 gradient = of_gradient.at(row, unit);
        const float2 output = of_output.at(row, unit);
        const float* const sums = side(h, 0).rows + 4 * unit + 2 * row;
        dot = fmaf(gradient.x, sums[0], fmaf(gradient.y, sums[1], dot));
        d[row] = fmaf(gradient.x, output.x, fmaf(gradient.y, output.y, d[row]));
      }
      d[row] = over_lanes(d[row]);
      // Products with ones are the same in all columns.
      gradients[row] =
          (1 - launch_.slope) * (over_lanes(dot) - d[row] * side(h, 0).numbers[2 * row]);
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      if (!exists(h, row) || lane() % 4 != 0) continue;
      static_cast<GatRowState*>(
          launch_.row_state)[(row_ + 8 * row) * launch_.heads + first_head() + h] =
          own_[h][row].state(launch_.slope, d[row]);
    }
  }
  __device__ void find_source_gradients(float (&gradients)[2], int h) const {
    OwnRows values;
    load(values, launch_.own_values, launch_.own_values_stride, h);
    const float slope = launch_.slope;
    const Side& plus = side(h, 0);
    const Side& minus = side(h, 1);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float dot = 0;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const float2 value = values.at(row, unit);
        const int at = 4 * unit + 2 * row;
        dot = fmaf(value.x, fmaf(slope, minus.rows[at], plus.rows[at]), dot);
        dot = fmaf(value.y, fmaf(slope, minus.rows[at + 1], plus.rows[at + 1]), dot);
      }
      // The high and the low part of D stand side by side.
      const float plus_d = plus.numbers[2 * row] + plus.numbers[2 * row + 1];
      const float minus_d = minus.numbers[2 * row] + minus.numbers[2 * row + 1];
      gradients[row] = over_lanes(dot) - plus_d - slope * minus_d;
    }
  }

  std::int64_t row_;  ///< row g of this lane
  std::int32_t num_rows_;
  Own own_[heads][2];
  bool by_exponentials_ = false;
  Side sides_[heads * num_sides];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
template <class T, int width, bool by_rows>
inline constexpr int gat_gradient_blocks = width == 128 ? (by_rows && sizeof(T) == 2 ? 3 : 2)
                                           : !by_rows   ? 3
                                           : width < 32 || sizeof(T) == 4 ? 4
                                                                          : 5;

template <class T, int width, bool by_rows>
__global__ __launch_bounds__(
    tall_attention_threads,
    (gat_gradient_blocks<T, width, by_rows>)) void differentiate_gat(const TallAttentionLaunch
                                                                         launch) {
  run_gathered_windows<GatGradient<T, width, by_rows>>(launch);
}

/// None for the narrow heads that go back by scaled rows (heads/backward.cuh).
template <class T, int width, bool by_rows>
constexpr TallAttentionFunction gat_gradient_function() {
  if constexpr (width < 32 && sizeof(T) == 4) {
    return {};
  } else {
    return gathered_function<GatGradient<T, width, by_rows>,
                             differentiate_gat<T, width, by_rows>>();
  }
}

template <class T, bool by_rows>
constexpr TallAttentionFunctions make_gat_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return TallAttentionFunctions{gat_gradient_function<T, tall_head_widths[i], by_rows>()...};
  }
  (std::make_index_sequence<tall_head_widths.size()>{});
}

}  // namespace tessera::ops
