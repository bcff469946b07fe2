// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/packed/fp16_units.cuh"
#include "ops/attention/cuda/packed/gradient_columns.cuh"
#include "ops/attention/cuda/packed/launch.hpp"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// The backward pass of GAT with narrow heads over windows of 64 rows: the sums of
/// tall/gat_gradient.cuh, which are of factors of columns where there is an edge and the sign fits,
/// times gathered rows. Here all heads of 64 features are taken together, and both factors and rows
/// are fp16: rows of bf16 lose nothing by that, times a power of two, and factors have eleven
/// digits. V has the power that the forward pass has; of dO the sweep over rows leaves the largest
/// size, as of D, from which the sweep over columns finds its powers.
///
/// Sums of numbers beside the rows, of 1 by rows and of D by columns, are products of each head's
/// factors with an operand whose other columns are 0, so that heads share their sums: lane 4 g + q
/// gets those of heads q and q + 4.
///
/// Where fp16 does not hold the rows of a tile, or a factor is extreme, that tile and the rest of
/// the piece take bf16 rows and an exponential per cell.
namespace tessera::ops {

template <int width, bool by_rows>
class PackedGradient
    : public GatheredWindows<PackedGradient<width, by_rows>, __nv_bfloat16, width, 1, 0,
                             PackedColumns<packed_gradient_features / width, by_rows>, 3,
                             packed_gradient_features / width> {
  using T = __nv_bfloat16;
  using Windows = GatheredWindows<PackedGradient, T, width, 1, 0,
                                  PackedColumns<packed_gradient_features / width, by_rows>, 3,
                                  packed_gradient_features / width>;

 public:
  using Windows::heads;

 private:
  static_assert(heads % 4 == 0);
  static constexpr int groups = heads / 4;
  static constexpr int num_sides = by_rows ? 1 : 2;  ///< with a plus, with a minus
  using Columns = PackedColumns<heads, by_rows>;
  using Sides = SideTerms<T>;
  using typename Windows::Rows;
  using Windows::all_features;
  using Windows::columns_of;
  using Windows::features;
  using Windows::first_feature;
  using Windows::first_head;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::memory_of;
  using Windows::rows_of;
  using Windows::units;

  /// What is there once. Terms of the window's own rows as they were given, each twice in a word:
  /// of two heads, rows g and g + 8. Each warp has its own.
  struct Own {
    uint4 terms[tall_attention_threads / 32][heads / 2][8];
    /// By rows, per head: ones in its column of an operand of numbers.
    uint2 ones[by_rows ? heads : 1][8];
  };

 public:
  static constexpr int shared_bytes = Windows::shared_bytes + static_cast<int>(sizeof(Own));

  __device__ PackedGradient(const TallAttentionLaunch& launch, char* shared)
      : Windows(launch, shared) {
    if constexpr (!by_rows) {
      row_scale_ = Fp16Scale(launch.largest[0]);
      const std::uint32_t exponent = launch.largest[1] >> 23;
      d_factor_ = Fp16Scale::factor_for(static_cast<int>(exponent));
      never_fp16_ = !Fp16Scale::is_finite(launch.largest[0]) || exponent == 255;
    } else if (threadIdx.x < heads * 8) {
      const int h = static_cast<int>(threadIdx.x / 8);
      const std::uint32_t one =
          static_cast<int>(threadIdx.x % 8) == number_column(h) ? packed<__half>(1.0f, 1.0f) : 0;
      own().ones[h][threadIdx.x % 8] = {one, one};
    }
  }

  /// What is asked for of the own rows is looked at with the first tile.
  __device__ void begin_piece(const tiles::Piece& piece) {
    set_rows(piece);
    begins_ = true;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int h = i / 2 * 4 + lane() % 4;
      const int row = i % 2;
      asked_terms_[i] = cuda::narrow<T>(0.0f);
      asked_log_sums_[i] = 0;
      if (!exists(h, row)) continue;
      asked_terms_[i] = static_cast<const T*>(
          launch_.target)[(row_ + 8 * row) * launch_.target_stride + first_head() + h];
      if constexpr (by_rows) asked_log_sums_[i] = own_log_sum(h, row);
    }
    by_exponentials_ = never_fp16_;
    has_sums_ = false;
#pragma unroll
    for (int i = 0; i < num_sides * heads * units * 4; ++i) {
      rows_[i / (heads * units * 4)][i / (units * 4) % heads][i / 4 % units][i % 4] = 0;
    }
#pragma unroll
    for (int i = 0; i < num_sides * number_sums * 4; ++i) {
      numbers_[i / (number_sums * 4)][i / 4 % number_sums][i % 4] = 0;
    }
  }

  __device__ void expect(const WindowRows& rows) const {
    this->expect_rows(launch_.own_values, launch_.own_values_stride, rows);
    if constexpr (by_rows) {
      this->expect_rows(launch_.own_output, launch_.own_output_stride, rows);
    }
    // Numbers of neighbouring rows lie side by side.
    if (lane() != 0 || first_row() >= rows.count) return;
    const std::int64_t row = std::int64_t{rows.first} + first_row();
    cuda::expect_in_l2(static_cast<const T*>(launch_.target) + row * launch_.target_stride +
                       first_head());
    if constexpr (by_rows) {
      cuda::expect_in_l2(launch_.log_sum + row * launch_.log_sum_stride + first_head());
    }
  }

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

  __device__ void finish(const tiles::Piece& piece) {
    set_rows(piece);
    if (begins_) {
      take_own();
      // Sums of no edges are 0 whatever the terms: a factor of theirs may be infinite.
      by_exponentials_ = true;
    }
    if constexpr (by_rows) {
      finish_targets(piece);
    } else {
      finish_sources(piece);
    }
  }

  __device__ void end() const {
    if constexpr (by_rows) {
      const std::uint32_t feature =
          __reduce_max_sync(~0u, max(largest_features_ & 0xffffu, largest_features_ >> 16));
      const std::uint32_t d = __reduce_max_sync(~0u, largest_d_);
      if (lane() != 0) return;
      atomicMax(launch_.largest, feature);
      atomicMax(launch_.largest + 1, d);
    }
  }

 private:
  // The two rows of this lane.

  __device__ static int place_of(int row) { return first_row() + lane() / 4 + 8 * row; }
  __device__ void set_rows(const tiles::Piece& piece) {
    row_ = std::int64_t{piece.first_row} + place_of(0);
    num_rows_ = piece.num_rows;
  }
  __device__ bool exists(int h, int row) const {
    return place_of(row) < num_rows_ && first_head() + h < launch_.heads;
  }
  __device__ Own& own() const {
    return *reinterpret_cast<Own*>(this->shared_ + Windows::shared_bytes);
  }
  __device__ uint4& own_words(int pair) const {
    return own().terms[threadIdx.x / 32][pair][lane() / 4];
  }
  __device__ std::uint32_t& own_word(int h, int row) const {
    return reinterpret_cast<std::uint32_t*>(&own_words(h / 2))[h % 2 * 2 + row];
  }
  /// Puts what was asked for where all lanes find it; returns whether its factors serve.
  __device__ bool take_own() {
    bool serve = true;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int h = i / 2 * 4 + lane() % 4;
      const float term = cuda::widen(asked_terms_[i]);
      own_word(h, i % 2) = packed<T>(term, term);
#pragma unroll
      for (int side = 0; side < num_sides; ++side) {
        const float exponent = own_exponent(term * log2_of_e, asked_log_sums_[i], side);
        serve = serve && !is_extreme_own_exponent(exponent);
      }
    }
    __syncwarp();
    begins_ = false;
    return serve;
  }
  /// In powers of two.
  __device__ float own_term(int h, int row) const { return Sides::term_of(own_word(h, row)); }
  __device__ float own_log_sum(int h, int row) const {
    return log2_of_e *
           launch_.log_sum[(row_ + 8 * row) * launch_.log_sum_stride + first_head() + h];
  }
  /// Of what the sums of a row are multiplied by; 0 by rows where the row has no edges.
  __device__ float own_exponent(float term, float log_sum, int side) const {
    if constexpr (by_rows) {
      return log_sum == -cuda::infinity ? 0 : term - log_sum;
    } else {
      return side == 0 ? term : launch_.slope * term;
    }
  }
  /// The factor itself with that of fp16, of a row that exists.
  __device__ float own_factor(int h, int row, int side) const {
    const float log_sum = by_rows ? own_log_sum(h, row) : 0;
    return power_of_2(own_exponent(own_term(h, row), log_sum, side)) * packed_factor_unit;
  }
  /// What sums of rows and numbers are multiplied by besides.
  __device__ float row_factor() const { return by_exponentials_ ? 1 : 1 / row_scale_.factor(); }
  __device__ float number_factor() const { return by_rows || by_exponentials_ ? 1 : 1 / d_factor_; }

  /// From now on sums are of weights times features.
  __device__ void take_own_factors() {
    const float of_rows = row_factor();
    const float of_numbers = number_factor();
#pragma unroll
    for (int i = 0; i < num_sides * 2 * heads; ++i) {
      const int side = i / (2 * heads);
      const int h = i / 2 % heads;
      const int row = i % 2;
      const float factor = exists(h, row) ? own_factor(h, row, side) : 0;
#pragma unroll
      for (int unit = 0; unit < units; ++unit) {
        // One after the other: their product may be out of range.
        rows_[side][h][unit][2 * row] = rows_[side][h][unit][2 * row] * factor * of_rows;
        rows_[side][h][unit][2 * row + 1] = rows_[side][h][unit][2 * row + 1] * factor * of_rows;
      }
    }
#pragma unroll
    for (int i = 0; i < num_sides * 2 * groups; ++i) {
      const int side = i / (2 * groups);
      const int group = i / 2 % groups;
      const int row = i % 2;
      const int h = group * 4 + lane() % 4;
      const float factor = exists(h, row) ? own_factor(h, row, side) : 0;
      if constexpr (by_rows) {
        numbers_[0][0][2 * row + group] *= factor;
      } else {
        numbers_[side][group][2 * row] = numbers_[side][group][2 * row] * factor * of_numbers;
        numbers_[side][group][2 * row + 1] =
            numbers_[side][group][2 * row + 1] * factor * of_numbers;
      }
    }
  }

  // Operands.

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
  /// By rows: of 1.
  __device__ static constexpr int number_column(int h) { return h % 4 * 2 + h / 4; }
  __device__ uint2 numbers_of(const Columns& columns, int group, int step) const {
    if constexpr (by_rows) {
      return {};
    } else {
      return *reinterpret_cast<const uint2*>(&columns.numbers[group][step * 32 + lane()]);
    }
  }
  __device__ float (&number_sum(int side, int h))[4] { return numbers_[side][by_rows ? 0 : h / 4]; }

  // Products.

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
        if (h % 2 == 0) own = own_words(h / 2);
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
      find_exponentials(weights, columns, h, step, cells);
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
  __device__ void find_exponentials(StepWeights<T> (&weights)[num_sides], const Columns& columns,
                                    int h, int step, const StepPattern& cells) const {
    float own[2], log_sums[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      own[row] = own_term(h, row);
      log_sums[row] = 0;
      if constexpr (by_rows) {
        if (exists(h, row)) log_sums[row] = own_log_sum(h, row);
      }
    }
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      float pairs[2][2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int column = step * tiles::step_columns + place / 2 * 8 + lane() % 4 * 2 + odd;
        const GatExponents of_cell =
            exponents(columns, h, column, own[place % 2], log_sums[place % 2]);
        const float weight = cells.masked(power_of_2(of_cell.exponent), place, odd);
        pairs[0][odd] = of_cell.plus ? weight : 0.0f;
        pairs[1][odd] = of_cell.plus ? 0.0f : weight;
      }
#pragma unroll
      for (int side = 0; side < num_sides; ++side) {
        weights[side].set(place, pairs[side][0], pairs[side][1]);
      }
    }
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

  // Results.

  /// Of four numbers the q-th, summed over the four lanes of a row.
  __device__ static float over_lanes(const float (&numbers)[4]) {
    const bool upper = lane() % 4 >= 2;
    const bool odd = lane() % 2 == 1;
    float kept[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float sent = upper ? numbers[i] : numbers[i + 2];
      kept[i] = (upper ? numbers[i + 2] : numbers[i]) + __shfl_xor_sync(~0u, sent, 2);
    }
    const float sent = odd ? kept[0] : kept[1];
    return (odd ? kept[1] : kept[0]) + __shfl_xor_sync(~0u, sent, 1);
  }

  /// This lane's two of every eight features of its rows; of what does not exist it is anything.
  struct OwnRows {
    std::uint32_t pairs[2][heads * units];
  };
  __device__ void load(OwnRows& rows, const void* matrix, std::int64_t stride) const {
    const int left = all_features() - first_feature();
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const T* from = static_cast<const T*>(matrix) + first_feature() + lane() % 4 * 2;
      if (place_of(row) < num_rows_) from += (row_ + 8 * row) * stride;
#pragma unroll
      for (int unit = 0; unit < heads * units; ++unit) {
        const int feature = left >= features ? unit * 8 : min(unit * 8, left - 8);
        rows.pairs[row][unit] = *reinterpret_cast<const std::uint32_t*>(from + feature);
      }
    }
  }
  /// Adds the product of a pair of features with sums.
  __device__ static float add_product(float dot, std::uint32_t pair, float low, float high) {
    const float2 features = unpacked<T>(pair);
    return fmaf(features.x, low, fmaf(features.y, high, dot));
  }

  __device__ void finish_targets(const tiles::Piece& piece) {
    OwnRows of_gradient, of_output;
    load(of_gradient, launch_.own_values, launch_.own_values_stride);
    load(of_output, launch_.own_output, launch_.own_output_stride);
    const GradientMatrix matrices[1] = {
        {launch_.score_gradient, launch_.score_gradient_stride, 1.0f,
         BlockColumns(first_head(), heads, static_cast<int>(launch_.heads))}};
    const GradientResults<T, 1> results(launch_, matrices);
    const float of_rows = row_factor();
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int group = i / 2;
      const int row = i % 2;
      float dots[4] = {};
      float ds[4] = {};
#pragma unroll
      for (int k = 0; k < 4 * units; ++k) {
        const int unit = group * 4 * units + k;
        const std::uint32_t pair = of_gradient.pairs[row][unit];
        const float* const sums = rows_[0][unit / units][unit % units] + 2 * row;
        const float2 output = unpacked<T>(of_output.pairs[row][unit]);
        dots[k / units] = add_product(dots[k / units], pair, sums[0], sums[1]);
        ds[k / units] = add_product(ds[k / units], pair, output.x, output.y);
        largest_features_ = __vmaxu2(largest_features_, pair & 0x7fff7fffu);
      }
      const float dot = over_lanes(dots);
      const float d = over_lanes(ds);
      const int h = group * 4 + lane() % 4;
      if (!exists(h, row)) continue;
      const float log_sum = own_log_sum(h, row);
      const float factor = by_exponentials_ ? 1.0f : own_factor(h, row, 0);
      results.store(
          piece, 0, place_of(row), h,
          (1 - launch_.slope) * factor * (dot * of_rows - d * numbers_[0][0][2 * row + group]));
      largest_d_ = max(largest_d_, __float_as_uint(d) & 0x7fffffffu);
      PackedRowState(own_term(h, row), log_sum, launch_.slope, d)
          .store(static_cast<PackedRowState*>(launch_.row_state) +
                 (row_ + 8 * row) * launch_.heads + first_head() + h);
    }
    results.finish(piece);
  }

  __device__ void finish_sources(const tiles::Piece& piece) {
    OwnRows values;
    load(values, launch_.own_values, launch_.own_values_stride);
    GradientMatrix matrices[2] = {
        {launch_.score_gradient, launch_.score_gradient_stride, 1.0f,
         BlockColumns(first_head(), heads, static_cast<int>(launch_.heads)), all_features()},
        {launch_.output, launch_.output_stride, 1.0f,
         BlockColumns(first_feature(), features, all_features())}};
    const GradientResults<T, 2> results(launch_, matrices);
    // Sums of weights times features and D.
    if (!by_exponentials_) take_own_factors();
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const auto value_row = results.row(piece, 1, place_of(row));
      const auto score_row = results.row(piece, 0, place_of(row));
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        float dots[4] = {};
#pragma unroll
        for (int k = 0; k < 4 * units; ++k) {
          const int unit = group * 4 * units + k;
          const float* const plus = rows_[0][unit / units][unit % units] + 2 * row;
          const float* const minus = rows_[num_sides - 1][unit / units][unit % units] + 2 * row;
          dots[k / units] = add_product(dots[k / units], values.pairs[row][unit],
                                        fmaf(launch_.slope, minus[0], plus[0]),
                                        fmaf(launch_.slope, minus[1], plus[1]));
          value_row.store(unit * 8 + lane() % 4 * 2, plus[0] + minus[0], plus[1] + minus[1]);
        }
        const float dot = over_lanes(dots);
        // The high and the low part of D stand side by side.
        const float* const plus = numbers_[0][group] + 2 * row;
        const float* const minus = numbers_[num_sides - 1][group] + 2 * row;
        score_row.store(group * 4 + lane() % 4,
                        dot - (plus[0] + plus[1]) - launch_.slope * (minus[0] + minus[1]));
      }
    }
    results.finish(piece);
  }

  static constexpr int number_sums = by_rows ? 1 : groups;

  std::int64_t row_;  ///< row g of this lane
  std::int32_t num_rows_;
  Fp16Scale row_scale_;
  float d_factor_ = 1;
  bool never_fp16_ = false;
  bool begins_ = false;  ///< a piece
  T asked_columns_[by_rows ? Rows::share : 1];
  T asked_terms_[2 * groups];
  float asked_log_sums_[2 * groups];
  bool by_exponentials_ = false;
  bool has_sums_ = false;
  bool converted_ = false;  ///< whether what this thread brought of the tile is fp16
  std::uint32_t largest_features_ = 0;
  std::uint32_t largest_d_ = 0;
  float rows_[num_sides][heads][units][4];
  float numbers_[num_sides][number_sums][4];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
template <bool by_rows>
inline constexpr int packed_gradient_blocks = by_rows ? 4 : 3;

template <int width, bool by_rows>
__global__ __launch_bounds__(
    tall_attention_threads,
    packed_gradient_blocks<by_rows>) void differentiate_packed(const TallAttentionLaunch launch) {
  run_gathered_windows<PackedGradient<width, by_rows>>(launch);
}

template <bool by_rows>
constexpr PackedGradientFunctions make_packed_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return PackedGradientFunctions{
        gathered_function<PackedGradient<tall_head_widths[i], by_rows>,
                          differentiate_packed<tall_head_widths[i], by_rows>>()...};
  }
  (std::make_index_sequence<num_packed_widths>{});
}

}  // namespace tessera::ops
