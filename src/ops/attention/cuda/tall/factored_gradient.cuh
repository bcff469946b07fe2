// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/factored_gradient_columns.cuh"
#include "ops/attention/cuda/tall/gat_gradient.cuh"
#include "ops/windows/matrix_rows.cuh"

/// The backward pass of GAT (gat_gradient.cuh) with heads of 32 features or more, of bf16 or, in
/// two parts, fp32.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class FactoredGradient : public GatGradient<FactoredGradient<T, width, by_rows>, T, width, by_rows,
                                            GatColumns<T, by_rows>> {
  using Windows = GatGradient<FactoredGradient, T, width, by_rows, GatColumns<T, by_rows>>;

 public:
  static constexpr int blocks = width == 128     ? (by_rows && sizeof(T) == 2 ? 3 : 2)
                                : !by_rows       ? 3
                                : sizeof(T) == 4 ? 4
                                                 : 5;
  using Windows::heads;
  using Windows::Windows;
  static_assert(heads == 1 && Windows::has_own_terms);
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;

  __device__ void begin_piece(const tiles::Piece& piece) {
    set_rows(piece);
    own_[0] = own_[1] = {};
    by_exponentials_ = false;
#pragma unroll
    for (Side& side : sides_) side.clear();
  }
  __device__ void take_own(int turn) {
    own_[0] = columns_of(turn).own[place_of(0)];
    own_[1] = columns_of(turn).own[place_of(1)];
    by_exponentials_ = columns_of(turn).extreme.any_own();
  }

  /// Factors of the columns that have arrived.
  __device__ void cut(int turn, int num_rows) {
    Windows::cut(turn, num_rows);
    if constexpr (!by_rows) {
      const int column = Windows::column_of_thread();
      if (Windows::head_of_thread(0) == 0) {
        columns_of(turn).find_factors(column, column < num_rows);
      }
    }
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).extreme.any()) {
      take_own_factors();
      by_exponentials_ = true;
    }
    if (by_exponentials_) {
#pragma unroll 1
      for (int step = 0; step < num_steps; ++step) {
        Weights weights[num_sides];
        this->find_exponentials(
            weights, StepPattern(pattern, step), step, [&](int column, int row) {
              return columns_of(turn).exponents(column, own_[row], launch_.slope);
            });
#pragma unroll
        for (Weights& of : weights) Products::keep(of);
        multiply(weights, turn, step);
      }
    } else {
      with_constant_steps(num_steps, [&](auto steps) { add_tile<steps>(turn, pattern); });
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    set_rows(piece);
    if (!by_exponentials_) take_own_factors();
    const auto results = this->results();
    float gradients[2];
    if constexpr (by_rows) {
      find_target_gradients(gradients);
    } else {
      find_source_gradients(gradients);
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      if constexpr (!by_rows) {
#pragma unroll
        for (int unit = 0; unit < units; ++unit) {
          const float* const plus = sides_[0].rows + 4 * unit + 2 * row;
          const float* const minus = sides_[1].rows + 4 * unit + 2 * row;
          results.row(piece, 1, place_of(row))
              .store(unit * 8 + lane() % 4 * 2, plus[0] + minus[0], plus[1] + minus[1]);
        }
      }
      if (lane() % 4 == 0) results.row(piece, 0, place_of(row)).store(0, gradients[row]);
    }
    results.finish(piece);
  }

  __device__ void end() const {}

 private:
  using typename Windows::Part;
  using Products = MatrixRows<T, width>;
  using Weights = StepWeights<Part>;
  using Columns = GatColumns<T, by_rows>;
  using Own = GatOwn<T, by_rows>;
  using Windows::columns_of, Windows::exists, Windows::first_feature, Windows::first_head,
      Windows::lane, Windows::launch_, Windows::num_sides, Windows::place_of, Windows::row_,
      Windows::rows_of, Windows::set_rows, Windows::units;
  /// Of one wide head the weights of several steps are found before they are multiplied.
  static constexpr int steps_at_once = 2;

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

  __device__ void take_own_factors() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sides_[0].scale(row, own_[row].factor());
      if constexpr (!by_rows) sides_[1].scale(row, own_[row].sloped_factor(launch_.slope));
    }
  }

  // Products.

  /// The products of a step are in flight while the weights of the next are found.
  template <int steps>
  __device__ void add_tile(int turn, const TilePattern& pattern) {
    Weights weights[steps][num_sides];
    begin();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      // There are registers for the weights of so many steps.
      if (step >= steps_at_once) Products::wait_for_all_but_last();
      find_weights(weights[step], columns_of(turn), pattern, step);
      // Before the products: their operands must not be read while they are in flight.
      add_numbers(weights[step], turn, step);
      Products::begin_step(weights[step]);
      ask(weights[step], turn, step);
      Products::commit();
    }
    wait();
  }
  __device__ void multiply(const Weights (&weights)[num_sides], int turn, int step) {
    add_numbers(weights, turn, step);
    begin();
    ask(weights, turn, step);
    Products::commit();
    wait();
  }
  __device__ void begin() {
#pragma unroll
    for (int of = 0; of < num_sides; ++of) Products::begin(sides_[of].rows);
  }
  __device__ void ask(const Weights (&weights)[num_sides], int turn, int step) {
#pragma unroll
    for (int of = 0; of < num_sides; ++of) {
      Products::add(sides_[of].rows, weights[of], rows_of(turn, 0), 0, step);
    }
  }
  __device__ void wait() {
#pragma unroll
    for (int of = 0; of < num_sides; ++of) Products::wait(sides_[of].rows);
  }
  __device__ void add_numbers(const Weights (&weights)[num_sides], int turn, int step) {
    std::uint32_t numbers[2];
    columns_of(turn).load_numbers(numbers, step);
#pragma unroll
    for (int of = 0; of < num_sides; ++of) {
      cuda::multiply_16x8<Part>(sides_[of].numbers, weights[of].low, numbers);
      cuda::multiply_16x8<Part>(sides_[of].numbers, weights[of].high, numbers);
    }
  }

  // Weights.

  /// Factors of columns where there is an edge of that side.
  __device__ void find_weights(Weights (&weights)[num_sides], const Columns& columns,
                               const TilePattern& pattern, int step) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int pair = step * 8 + half * 4 + lane() % 4;
      using Pair = typename SideTerms<T>::Pair;
      const Pair minus_terms = reinterpret_cast<const Pair*>(columns.minus_term)[pair];
      const auto factors = columns.factors[pair];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int place = 2 * half + row;
        const std::uint32_t edges = pattern.mask(4 * step + place);
        const std::uint32_t plus = SideTerms<T>::plus(own_[row].side, minus_terms);
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

  // Results of a row of this lane.

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
  __device__ void load(OwnRows& rows, const void* matrix, std::int64_t stride) const {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const T* from = static_cast<const T*>(matrix) + lane() % 4 * 2;
      if (exists(row)) from += (row_ + 8 * row) * stride + first_feature();
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        rows.pairs[row][unit] = OwnRows::Pair::load(from + unit * 8);
      }
    }
  }
  __device__ void find_target_gradients(float (&gradients)[2]) const {
    OwnRows of_gradient, of_output;
    load(of_gradient, launch_.own_values, launch_.own_values_stride);
    load(of_output, launch_.own_output, launch_.own_output_stride);
    float d[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float dot = 0;
      d[row] = 0;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        const float2 gradient = of_gradient.at(row, unit);
        const float2 output = of_output.at(row, unit);
        const float* const sums = sides_[0].rows + 4 * unit + 2 * row;
        dot = fmaf(gradient.x, sums[0], fmaf(gradient.y, sums[1], dot));
        d[row] = fmaf(gradient.x, output.x, fmaf(gradient.y, output.y, d[row]));
      }
      d[row] = over_lanes(d[row]);
      // Products with ones are the same in all columns.
      gradients[row] =
          (1 - launch_.slope) * (over_lanes(dot) - d[row] * sides_[0].numbers[2 * row]);
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      if (!exists(row) || lane() % 4 != 0) continue;
      static_cast<GatRowState*>(
          launch_.row_state)[(row_ + 8 * row) * launch_.heads + first_head()] =
          own_[row].state(launch_.slope, d[row]);
    }
  }
  __device__ void find_source_gradients(float (&gradients)[2]) const {
    OwnRows values;
    load(values, launch_.own_values, launch_.own_values_stride);
    const float slope = launch_.slope;
    const Side& plus = sides_[0];
    const Side& minus = sides_[1];
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

  Own own_[2];
  bool by_exponentials_ = false;
  Side sides_[num_sides];
};

}  // namespace tessera::ops
