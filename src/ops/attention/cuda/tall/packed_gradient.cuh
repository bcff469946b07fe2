// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/packed_gradient_sums.cuh"
#include "ops/windows/edge_weights.cuh"

/// The backward pass of GAT (gat_gradient.cuh) with narrow heads. All heads of 64 features are
/// taken together, and both factors and rows are fp16: rows of bf16 lose nothing by that, times a
/// power of two, and factors have eleven digits. V has the power that the forward pass has; of dO
/// the sweep over rows leaves the largest size, as of D, from which the sweep over columns finds
/// its powers.
///
/// Sums of numbers beside the rows, of 1 by rows and of D by columns, are products of each head's
/// factors with an operand whose other columns are 0, so that heads share their sums: lane 4 g + q
/// gets those of heads q and q + 4.
///
/// Where fp16 does not hold the rows of a tile, or a factor is extreme, that tile and the rest of
/// the piece take bf16 rows and an exponential per cell.
namespace tessera::ops {

template <int width, bool by_rows>
class PackedGradient : public PackedGradientSums<PackedGradient<width, by_rows>, width, by_rows> {
  using Sums = PackedGradientSums<PackedGradient, width, by_rows>;
  using Columns = PackedColumns<packed_gradient_features / width, by_rows>;
  using Sums::asked_columns_, Sums::begins_, Sums::by_exponentials_, Sums::columns_of,
      Sums::converted_, Sums::d_factor_, Sums::exists, Sums::first_head, Sums::has_sums_,
      Sums::lane, Sums::launch_, Sums::memory_of, Sums::never_fp16_, Sums::num_sides,
      Sums::number_column, Sums::numbers_, Sums::own, Sums::own_log_sum, Sums::own_term,
      Sums::row_scale_, Sums::rows_, Sums::rows_of, Sums::take_own, Sums::take_own_factors,
      Sums::units;
  using typename Sums::Rows, typename Sums::Sides, typename Sums::T;

 public:
  static constexpr int blocks = by_rows ? 4 : 3;
  using Sums::heads;
  using Sums::Sums;

  /// Of neighbouring threads each has a head of the same columns, whose numbers lie side by side.
  __device__ void ask_with_rows(int turn, const VertexId (&vertices)[Rows::share],
                                int num_columns) {
    const std::int64_t head = first_head() + Rows::unit_of_thread();
    const bool wanted = brings(num_columns);
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) {
      if constexpr (by_rows) {
        asked_columns_[i] = cuda::narrow<T>(0.0f);
        if (wanted) {
          asked_columns_[i] = static_cast<const T*>(
              launch_.source)[std::int64_t{vertices[i]} * launch_.source_stride + head];
        }
      } else if (wanted) {
        PackedRowState* const to =
            &columns_of(turn).of[Rows::row_of_thread(i)][Rows::unit_of_thread()];
        cuda::copy_16_async(cuda::shared_address(to),
                            static_cast<const PackedRowState*>(launch_.row_state) +
                                std::int64_t{vertices[i]} * launch_.heads + head);
      }
    }
  }
  __device__ void put_with_rows(int turn) {
    if constexpr (by_rows) {
      bool serve = true;
      each_pair_of_thread([&](int i, int h, int column) {
        serve = columns_of(turn).put(h, column, asked_columns_[i], asked_columns_[i + 1]) && serve;
      });
      columns_of(turn).extreme.set(!serve);
    }
  }

  /// Makes operands of what this thread has brought.
  __device__ void cut(int turn, int num_rows) {
    bool fails = begins_ && !take_own();
    if constexpr (!by_rows) {
      each_pair(num_rows, [&](int h, int column, bool exist) {
        fails = !columns_of(turn).find_factors(h, column, exist, d_factor_) || fails;
      });
    }
    converted_ = convert(turn, num_rows);
    columns_of(turn).failing.set(fails || !converted_);
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    if (!by_exponentials_ && columns_of(turn).fails()) {
      if (has_sums_) take_own_factors();
      by_exponentials_ = true;
    }
    has_sums_ = true;
    if (by_exponentials_) {
      restore(turn, num_steps * tiles::step_columns);
      __syncthreads();
      each_step(pattern, num_steps, [&](int step) { add_exponentials(turn, pattern, step); });
    } else {
      each_step(pattern, num_steps, [&](int step) { add_factors(turn, pattern, step); });
    }
  }

 private:
  /// Whether this thread brings what belongs to a head, and columns that there are.
  __device__ bool brings(int num_columns) const {
    const int h = Rows::unit_of_thread();
    return h < heads && first_head() + h < launch_.heads && Rows::row_of_thread(0) < num_columns;
  }
  /// Calls body of the head and the pairs of columns that this thread brings something of.
  template <class Body>
  __device__ static void each_pair_of_thread(Body&& body) {
    if (Rows::unit_of_thread() >= heads) return;
#pragma unroll
    for (int i = 0; i < Rows::share; i += 2) {
      body(i, Rows::unit_of_thread(), Rows::row_of_thread(i));
    }
  }
  template <class Body>
  __device__ void each_pair(int num_columns, Body&& body) const {
    each_pair_of_thread([&](int, int h, int column) { body(h, column, brings(num_columns)); });
  }
  __device__ uint4& unit_of(int turn, int i) const {
    return *reinterpret_cast<uint4*>(memory_of(turn, 0) +
                                     Rows::offset(Rows::row_of_thread(i), Rows::unit_of_thread()));
  }
  /// What this thread has brought of a tile becomes fp16, if that holds all of it.
  __device__ bool convert(int turn, int num_rows) const {
    if (never_fp16_) return false;
    if (Rows::row_of_thread(0) >= num_rows) return true;
    Fp16Range range(row_scale_);
    uint4 converted[Rows::share];
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) converted[i] = range.convert(unit_of(turn, i));
    if (!range.holds()) return false;
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) unit_of(turn, i) = converted[i];
    return true;
  }
  /// What it was.
  __device__ void restore(int turn, int num_rows) const {
    if constexpr (!by_rows) {
      each_pair(num_rows, [&](int h, int column, bool exist) {
        columns_of(turn).restore_numbers(h, column, exist);
      });
    }
    if (!converted_ || Rows::row_of_thread(0) >= num_rows) return;
    const Fp16Range range(row_scale_);
#pragma unroll
    for (int i = 0; i < Rows::share; ++i) unit_of(turn, i) = range.restore(unit_of(turn, i));
  }
  /// The operand of numbers that belongs to a head, 0 in other columns, which is what `d` has for
  /// all heads of its group.
  __device__ static void select_numbers(std::uint32_t (&b)[2], int h, const uint2& d) {
    const bool own = lane() / 8 == h % 4;
    b[0] = own ? d.x : 0;
    b[1] = own ? d.y : 0;
  }
  __device__ uint2 numbers_of(const Columns& columns, int group, int step) const {
    if constexpr (by_rows) {
      return {};
    } else {
      return *reinterpret_cast<const uint2*>(&columns.numbers[group][step * 32 + lane()]);
    }
  }
  __device__ float (&number_sum(int side, int h))[4] { return numbers_[side][by_rows ? 0 : h / 4]; }

  /// Calls body of the steps in which a row of this warp has an edge.
  template <class Body>
  __device__ static void each_step(const TilePattern& pattern, int num_steps, Body&& body) {
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      if (StepPattern(pattern, step).has_edges()) body(step);
    }
  }

  __device__ void add_factors(int turn, const TilePattern& pattern, int step) {
    const Columns& columns = columns_of(turn);
    std::uint32_t edges[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) edges[i] = pattern.mask(4 * step + i);
    std::uint32_t blocks[4];
    uint4 own;
    uint2 d;
    std::uint32_t weights[num_sides][4];
#pragma unroll
    for (int unit = 0; unit < heads * units; ++unit) {
      const int h = unit / units;
      if (unit % 2 == 0) Rows::load_columns(blocks, rows_of(turn, 0), step, unit);
      if (unit % units == 0) {
        if (h % 4 == 0) d = numbers_of(columns, h / 4, step);
        if (h % 2 == 0) own = this->own().terms.pair(h / 2);
        const std::uint32_t sides[2] = {h % 2 == 0 ? own.x : own.z, h % 2 == 0 ? own.y : own.w};
        find_factors(weights, columns, h, step, sides, edges);
        std::uint32_t numbers[2];
        if constexpr (by_rows) {
          const uint2 ones = this->own().ones[h][lane() / 4];
          numbers[0] = ones.x;
          numbers[1] = ones.y;
        } else {
          select_numbers(numbers, h, d);
        }
#pragma unroll
        for (int side = 0; side < num_sides; ++side) {
          cuda::multiply_16x8<__half>(number_sum(side, h), weights[side], numbers);
        }
      }
      const std::uint32_t b[2] = {blocks[unit % 2 * 2], blocks[unit % 2 * 2 + 1]};
#pragma unroll
      for (int side = 0; side < num_sides; ++side) {
        cuda::multiply_16x8<__half>(rows_[side][h][unit % units], weights[side], b);
      }
    }
  }
  /// Factors of columns where there is an edge of that side.
  __device__ void find_factors(std::uint32_t (&weights)[num_sides][4], const Columns& columns,
                               int h, int step, const std::uint32_t (&own)[2],
                               const std::uint32_t (&edges)[4]) const {
    uint4 factors;
    uint2 minus_terms;
    if constexpr (by_rows) {
      const uint4 cells = *reinterpret_cast<const uint4*>(&columns.cells[h][step * 4 + lane() % 4]);
      factors = {cells.x, cells.y, 0, 0};
      minus_terms = {cells.z, cells.w};
    } else {
      factors = *reinterpret_cast<const uint4*>(&columns.factors[h][step * 4 + lane() % 4]);
      minus_terms = *reinterpret_cast<const uint2*>(&columns.minus_terms[h][step * 4 + lane() % 4]);
    }
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const bool second = place / 2 == 1;
      const std::uint32_t plus =
          Sides::plus(own[place % 2], second ? minus_terms.y : minus_terms.x);
      weights[0][place] = (second ? factors.y : factors.x) & edges[place] & plus;
      if constexpr (!by_rows) {
        weights[1][place] = (second ? factors.w : factors.z) & edges[place] & ~plus;
      }
    }
  }

  /// The same with weights themselves, in two parts.
  __device__ void add_exponentials(int turn, const TilePattern& pattern, int step) {
    const Columns& columns = columns_of(turn);
    const StepPattern cells(pattern, step);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      // Of others nothing was brought.
      if (first_head() + h >= launch_.heads) break;
      StepWeights<T> weights[num_sides];
      find_weights(weights, columns, h, step, cells);
      std::uint32_t numbers[2];
      if constexpr (by_rows) {
        numbers[0] = numbers[1] = lane() / 4 == number_column(h) ? packed<T>(1.0f, 1.0f) : 0;
      } else {
        select_numbers(numbers, h, numbers_of(columns, h / 4, step));
      }
#pragma unroll
      for (int side = 0; side < num_sides; ++side) {
        float found[4] = {};
        cuda::multiply_16x8<T>(found, weights[side].low, numbers);
        cuda::multiply_16x8<T>(found, weights[side].high, numbers);
        add_own_numbers(number_sum(side, h), found, h);
#pragma unroll
        for (int unit = 0; unit < units; ++unit) {
          std::uint32_t blocks[4];
          Rows::load_column(blocks, rows_of(turn, 0), step, h * units + unit);
          const std::uint32_t b[2] = {blocks[0], blocks[1]};
          cuda::multiply_16x8<T>(rows_[side][h][unit], weights[side].low, b);
          cuda::multiply_16x8<T>(rows_[side][h][unit], weights[side].high, b);
        }
      }
    }
  }
  /// Those of a head: of others a weight that is not finite, times 0, is not a number.
  __device__ static void add_own_numbers(float (&sums)[4], const float (&found)[4], int h) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool own = lane() % 4 == h % 4 && (!by_rows || i % 2 == h / 4);
      sums[i] += own ? found[i] : 0.0f;
    }
  }
  __device__ void find_weights(StepWeights<T> (&weights)[num_sides], const Columns& columns, int h,
                               int step, const StepPattern& cells) const {
    float own[2], log_sums[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      own[row] = own_term(h, row);
      log_sums[row] = 0;
      if constexpr (by_rows) {
        if (exists(h, row)) log_sums[row] = own_log_sum(h, row);
      }
    }
    Sums::find_exponentials(weights, cells, step, [&](int column, int row) {
      return exponents(columns, h, column, own[row], log_sums[row]);
    });
  }
  __device__ GatExponents exponents(const Columns& columns, int h, int column, float own,
                                    float log_sum) const {
    if constexpr (by_rows) {
      const float minus_r = columns.minus_term(h, column);
      // Edges with a minus do not count by rows.
      return {own - log_sum - minus_r, minus_r - own < 0};
    } else {
      const PackedRowState& state = columns.of[column][h];
      const float minus_l = Sides::widened(state.minus_l);
      const bool plus = minus_l - own < 0;
      const float sum = own - minus_l;
      return {(plus ? sum : launch_.slope * sum) - state.log_sum, plus};
    }
  }
};

}  // namespace tessera::ops
