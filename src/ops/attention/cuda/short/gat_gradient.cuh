// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/short/gat_gradient_results.cuh"
#include "ops/attention/cuda/short/gat_windows.cuh"
#include "ops/attention/cuda/short/row_states.cuh"
#include "ops/attention/cuda/short/workers.cuh"
#include "ops/attention/cuda/tall/gat_vertices.cuh"

/// The backward pass of GAT over windows of 16 rows in bf16, by the formulas of
/// tall/gat_gradient.cuh: gathered rows are summed with the factors of their columns, the edges of
/// either sign apart, and the factors of the own vertices come out of the sums. Pieces with extreme
/// factors take a second turn, by an exponential per cell.
namespace tessera::ops {

using GatPart = __nv_bfloat16;

/// Rows of the window itself, 16 bytes of rows 2q, 2q + 1, 2q + 8 and 2q + 9 for each lane as it
/// has sums of them: copied by each lane for itself.
template <int width>
class OwnSumRows {
  static constexpr int chunks = width / 64;

 public:
  static constexpr int bytes = 16 * width * 2;

  __device__ OwnSumRows(char* memory, const void* matrix, std::int64_t stride)
      : memory_(memory + WarpLane::number() * 16),
        rows_(matrix, stride, width, WarpLane::group() * 8) {}

  __device__ void start(const tiles::Piece& piece) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = place_of(i / 2, i % 2);
      if (place >= piece.num_rows) continue;
      const char* const from = rows_.at(piece.first_row + place);
#pragma unroll
      for (int chunk = 0; chunk < chunks; ++chunk) {
        cuda::copy_16_async(cuda::shared_address(at(i, chunk)), from + chunk * 128);
      }
    }
  }
  /// Of row 8 half + 2q + odd, when the copies of this lane have come.
  __device__ void load(int half, int odd, int chunk, float (&features)[8]) const {
    widen_unit<GatPart>(*reinterpret_cast<const uint4*>(at(2 * half + odd, chunk)), features);
  }

  __device__ static int place_of(int half, int odd) {
    return 8 * half + 2 * WarpLane::quarter() + odd;
  }

 private:
  __device__ char* at(int i, int chunk) const { return memory_ + (i * chunks + chunk) * 512; }

  char* memory_;
  FeatureRows rows_;
};

/// Waits for the copies that a lane asked for when a piece began. They came with the first of its
/// steps, and the rows of the last step that was asked for need not have come yet.
__device__ inline void wait_for_own_rows(const tiles::Piece& piece, bool by_steps) {
  if (by_steps && piece.num_steps > 1) {
    cuda::wait_for_copies<1>();
  } else {
    wait_for_all_copies();
  }
}

/// Of what a lane has of its features, over all features of a row.
__device__ inline float over_groups(float sum) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

/// A number of row g + 8 `half`, for row 8 half + 2q + odd.
__device__ inline float to_sum_row(float of_cells, int odd) {
  return __shfl_sync(~0u, of_cells, 4 * (2 * WarpLane::quarter() + odd));
}

/// The largest distance of exponents from the middle of those that factors may have; what is not a
/// number shows in the log_sum of its row, which is an own factor.
struct FactorRange {
  static constexpr float middle = (least_gat_exponent + largest_gat_exponent) / 2;
  static constexpr float reach = largest_gat_exponent - middle;
  float distance = 0;

  __device__ void add(float exponent) { distance = fmaxf(distance, fabsf(exponent - middle)); }
  __device__ bool holds() const { return distance <= reach; }
};

/// The sums over the edges of one side.
template <int width>
struct GatSideSums {
  FeatureSums<GatPart, width> rows;
  /// Of ones or of D, for rows 2q and 2q + 1, then for those 8 further on.
  float numbers[4];

  __device__ void clear() {
    rows.clear();
#pragma unroll
    for (float& sum : numbers) sum = 0;
  }
  /// `of_columns` are operands of 8 rows that the first and the second half of the window meet.
  template <class Weigh>
  __device__ void add(Weigh&& weigh, const StepOperands<GatPart>& weights,
                      const std::uint32_t (&of_columns)[2]) {
    weigh(rows, weights);
    const std::uint32_t operands[2][4] = {{of_columns[0], 0, of_columns[1], 0},
                                          {0, of_columns[0], 0, of_columns[1]}};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      cuda::multiply_16x8<GatPart>(numbers, operands[half], weights.low[half]);
      cuda::multiply_16x8<GatPart>(numbers, operands[half], weights.high[half]);
    }
  }
};

/// Factors where there is an edge of that side; `sides` says which cells have it.
__device__ inline void mask_factors(StepOperands<GatPart>& weights, int row, int i,
                                    std::uint32_t high, std::uint32_t low, std::uint32_t cells) {
  weights.high[row][i] = high & cells;
  weights.low[row][i] = low & cells;
}

/// Which of the columns of a step the i-th of this lane's cells of a row belongs to.
__device__ inline int column_of_cell(int i) { return 2 * WarpLane::quarter() + i % 2 + i / 2 * 8; }

/// Pieces from `left` on for which factors do not serve, with nothing on its way meanwhile.
template <int width, class Pass>
__device__ void take_second_turn(Pass& pass, const TallAttentionLaunch& launch,
                                 const GatRows& gathered, std::int32_t left, std::int32_t end) {
  for (; left < end; ++left) {
    const tiles::Piece piece = launch.pieces[left];
    const VertexId* columns = launch.columns + std::int64_t{piece.first_step} * tiles::step_columns;
    pass.load_own(piece);
    pass.begin_piece(piece);
    for (int i = WarpLane::number(); i < piece.num_steps * tiles::step_columns; i += 32) {
      pass.look_at(columns[i]);
    }
    if (pass.fits()) {
      wait_for_all_copies();
      continue;
    }
    for (int i = 0; i < piece.num_steps; ++i) {
      const std::uint32_t word =
          launch.words[(std::int64_t{piece.first_tile} + i / 4) * 32 + WarpLane::number()];
      pass.add_exponentials(columns, word >> (4 * (i % 4)), [&](auto& sums, const auto& weights) {
        add_rows_now(sums, weights, gathered, columns);
      });
      columns += tiles::step_columns;
    }
    pass.finish(piece, false);
  }
}

/// The sweep over windows of targets: dl, and the states of targets for the other sweep.
template <int width>
class ShortGatByRows {
  /// What lanes leave for each other of two neighbouring columns: their factors in two parts, and
  /// their terms with a minus.
  struct alignas(16) Pair {
    std::uint16_t high[2], low[2], minus_term[2], unused[2];
  };
  using Exchange = Pair[tiles::step_columns / 2];
  using Own = GatOwn<GatPart, true>;

 public:
  static constexpr int shared_bytes = GatWindows<width>::bytes +
                                      2 * static_cast<int>(sizeof(Exchange)) +
                                      2 * OwnSumRows<width>::bytes;

  __device__ ShortGatByRows(const TallAttentionLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        gradients_(memory + 2 * sizeof(Exchange), launch.own_values, launch.own_values_stride),
        outputs_(memory + 2 * sizeof(Exchange) + OwnSumRows<width>::bytes, launch.own_output,
                 launch.own_output_stride),
        values_(launch.value, launch.value_stride, width, WarpLane::group() * 8),
        sources_(launch.source, launch.source_stride, 1, 0) {}

  __device__ void run(std::int32_t begin, std::int32_t end) {
    const std::int32_t left =
        GatWindows<width>::walk(*this, launch_, values_, begin, end,
                                memory_ + 2 * sizeof(Exchange) + 2 * OwnSumRows<width>::bytes);
    take_second_turn<width>(*this, launch_, values_, left, end);
  }

  __device__ void load_own(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      next_term_[row] = cuda::narrow<GatPart>(0.0f);
      if (place < piece.num_rows) {
        next_term_[row] =
            gat_term<GatPart>(launch_.target, launch_.target_stride, piece.first_row + place);
      }
      next_log_sum_[row] = own_log_sum(launch_, piece, row);
    }
  }
  __device__ void begin_piece(const tiles::Piece& piece) {
    gradients_.start(piece);
    outputs_.start(piece);
    bool fails = false;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const __nv_bfloat162 twice = {next_term_[row], next_term_[row]};
      own_[row] = {reinterpret_cast<const std::uint32_t&>(twice), next_log_sum_[row] * log2_of_e};
      fails = fails || own_[row].fails(launch_.slope);
    }
    range_.distance = fails ? cuda::infinity : 0.0f;
    sums_.clear();
  }

  __device__ void bring(VertexId column) {
    term_ = __ldg(reinterpret_cast<const GatPart*>(sources_.at(column)));
  }
  __device__ void share() {
    const float term = cuda::widen(term_);
    exponent_ = term * log2_of_e;
    turn_ ^= sizeof(Exchange);
    if (WarpLane::number() < 16) {
      Pair& pair = reinterpret_cast<Pair*>(memory_ + turn_)[brought_column() / 2];
      const int odd = brought_column() % 2;
      const std::uint32_t parts = two_parts(power_of_2(exponent_));
      pair.high[odd] = static_cast<std::uint16_t>(parts);
      pair.low[odd] = static_cast<std::uint16_t>(parts >> 16);
      pair.minus_term[odd] = __bfloat16_as_ushort(cuda::narrow<GatPart>(-term));
    }
  }

  template <class Weigh>
  __device__ void add(std::uint32_t bits, Weigh&& weigh) {
    range_.add(exponent_);
    const TilePattern pattern{bits};
    StepOperands<GatPart> weights;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 pair =
          reinterpret_cast<const uint4*>(memory_ + turn_)[WarpLane::quarter() + 4 * i];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const std::uint32_t plus = SideTerms<GatPart>::plus(own_[row].side, pair.z);
        mask_factors(weights, row, i, pair.x, pair.y, pattern.mask(2 * i + row) & plus);
      }
    }
    add_weighted(weigh, weights);
  }

  /// One step by an exponential per cell, with the factors of both vertices.
  template <class Weigh>
  __device__ void add_exponentials(const VertexId* columns, std::uint32_t bits, Weigh&& weigh) {
    StepCells cells;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float r = gat_power(cuda::widen(
          gat_term<GatPart>(launch_.source, launch_.source_stride, columns[column_of_cell(i)])));
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const bool counts =
            StepCells::exists(bits, i / 2, 2 * row + i % 2) && !(own_[row].term() + r <= 0);
        cells.of[i / 2][2 * row + i % 2] = counts ? power_of_2(own_[row].shift() + r) : 0.0f;
      }
    }
    add_weighted(weigh, StepOperands<GatPart>(cells));
  }
  /// Whether factors serve for the columns of a step.
  __device__ void look_at(VertexId column) {
    range_.add(log2_of_e *
               cuda::widen(gat_term<GatPart>(launch_.source, launch_.source_stride, column)));
  }
  __device__ bool fits() const { return __all_sync(~0u, range_.holds()) != 0; }

  __device__ void finish(const tiles::Piece& piece, bool by_factors) {
    wait_for_own_rows(piece, by_factors);
    const GatGradientResults<width, false> results(launch_, piece);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        float dot = 0, d = 0;
#pragma unroll
        for (int chunk = 0; chunk < width / 64; ++chunk) {
          float gradient[8], output[8], sums[8];
          gradients_.load(half, odd, chunk, gradient);
          outputs_.load(half, odd, chunk, output);
          sums_.rows.row(chunk, half, odd, sums);
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            dot = fmaf(gradient[k], sums[k], dot);
            d = fmaf(gradient[k], output[k], d);
          }
        }
        dot = over_groups(dot);
        d = over_groups(d);
        const Own own = {__shfl_sync(~0u, own_[half].side, 4 * (2 * WarpLane::quarter() + odd)),
                         to_sum_row(own_[half].log_sum, odd)};
        const int place = OwnSumRows<width>::place_of(half, odd);
        if (WarpLane::group() == 0 && place < piece.num_rows) {
          static_cast<GatRowState*>(
              launch_.row_state)[(std::int64_t{piece.first_row} + place) * launch_.heads +
                                 blockIdx.y] = own.state(launch_.slope, d);
        }
        const float factor = by_factors ? own.factor() : 1.0f;
        results.store_number(
            place, (1 - launch_.slope) * factor * (dot - d * sums_.numbers[2 * half + odd]));
      }
    }
    results.finish();
  }

 private:
  template <class Weigh>
  __device__ void add_weighted(Weigh&& weigh, const StepOperands<GatPart>& weights) {
    constexpr std::uint32_t one = 0x3f803f80u;
    const std::uint32_t ones[2] = {one, one};
    sums_.add(weigh, weights, ones);
  }

  const TallAttentionLaunch& launch_;
  char* memory_;
  OwnSumRows<width> gradients_, outputs_;
  GatRows values_, sources_;
  GatPart term_;
  float exponent_ = 0;  ///< of the factor that this lane left for others
  GatPart next_term_[2];
  float next_log_sum_[2];
  Own own_[2];  ///< of rows g and g + 8
  FactorRange range_;
  unsigned turn_ = 0;
  GatSideSums<width> sums_;  ///< with a plus
};

/// The sweep over windows of sources: dr and dV.
template <int width>
class ShortGatByColumns {
  /// What lanes leave for each other of two neighbouring columns: factors of either side in two
  /// parts, terms with a minus, and D in two parts.
  struct alignas(16) Pair {
    std::uint16_t high[2][2], low[2][2];  ///< of edges with a plus, then of those with a minus
    std::uint16_t minus_term[2], d_high[2], d_low[2], unused[2];
  };
  using Exchange = Pair[tiles::step_columns / 2];
  using Own = GatOwn<GatPart, false>;

 public:
  static constexpr int shared_bytes =
      GatWindows<width>::bytes + 2 * static_cast<int>(sizeof(Exchange)) + OwnSumRows<width>::bytes;

  __device__ ShortGatByColumns(const TallAttentionLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        own_values_(memory + 2 * sizeof(Exchange), launch.own_values, launch.own_values_stride),
        gradients_(launch.value, launch.value_stride, width, WarpLane::group() * 8) {}

  __device__ void run(std::int32_t begin, std::int32_t end) {
    const std::int32_t left =
        GatWindows<width>::walk(*this, launch_, gradients_, begin, end,
                                memory_ + 2 * sizeof(Exchange) + OwnSumRows<width>::bytes);
    take_second_turn<width>(*this, launch_, gradients_, left, end);
  }

  __device__ void load_own(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      next_term_[row] = cuda::narrow<GatPart>(0.0f);
      if (place < piece.num_rows) {
        next_term_[row] =
            gat_term<GatPart>(launch_.target, launch_.target_stride, piece.first_row + place);
      }
    }
  }
  __device__ void begin_piece(const tiles::Piece& piece) {
    own_values_.start(piece);
    bool fails = false;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const __nv_bfloat162 twice = {next_term_[row], next_term_[row]};
      own_[row] = {reinterpret_cast<const std::uint32_t&>(twice)};
      fails = fails || own_[row].fails(launch_.slope);
    }
    range_.distance = fails ? cuda::infinity : 0.0f;
#pragma unroll
    for (GatSideSums<width>& side : sides_) side.clear();
  }

  __device__ void bring(VertexId column) {
    state_ = __ldg(reinterpret_cast<const float4*>(state_of(column)));
  }
  /// Half of the lanes find factors of either side.
  __device__ void share() {
    const int side = WarpLane::number() / 16;
    exponent_ = side == 0 ? state_.y : state_.z;
    turn_ ^= sizeof(Exchange);
    Pair& pair = reinterpret_cast<Pair*>(memory_ + turn_)[brought_column() / 2];
    const int odd = brought_column() % 2;
    const std::uint32_t factor = two_parts(power_of_2(exponent_));
    pair.high[side][odd] = static_cast<std::uint16_t>(factor);
    pair.low[side][odd] = static_cast<std::uint16_t>(factor >> 16);
    if (side == 0) {
      pair.minus_term[odd] = __bfloat16_as_ushort(SideTerms<GatPart>::column(state_.x));
    } else {
      const std::uint32_t d = two_parts(state_.w);
      pair.d_high[odd] = static_cast<std::uint16_t>(d);
      pair.d_low[odd] = static_cast<std::uint16_t>(d >> 16);
    }
  }

  template <class Weigh>
  __device__ void add(std::uint32_t bits, Weigh&& weigh) {
    range_.add(exponent_);
    const TilePattern pattern{bits};
    StepOperands<GatPart> plus, minus;
    std::uint32_t d[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4* const from =
          reinterpret_cast<const uint4*>(memory_ + turn_) + 2 * (WarpLane::quarter() + 4 * i);
      const uint4 factors = from[0];
      const uint4 others = from[1];
      d[i] = part_of_d(others.y, others.z);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const std::uint32_t edges = pattern.mask(2 * i + row);
        const std::uint32_t sides = SideTerms<GatPart>::plus(own_[row].side, others.x);
        mask_factors(plus, row, i, factors.x, factors.z, edges & sides);
        mask_factors(minus, row, i, factors.y, factors.w, edges & ~sides);
      }
    }
    sides_[0].add(weigh, plus, d);
    sides_[1].add(weigh, minus, d);
  }

  /// One step by an exponential per cell, with the factors of both vertices.
  template <class Weigh>
  __device__ void add_exponentials(const VertexId* columns, std::uint32_t bits, Weigh&& weigh) {
    StepCells plus, minus;
    float row_dots[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const GatRowState state = *state_of(columns[column_of_cell(i)]);
      row_dots[i] = state.d;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int k = 2 * row + i % 2;
        const float r = own_[row].term();
        const bool above = state.minus_l - r < 0;
        const float weight =
            power_of_2(above ? state.shift + r : fmaf(launch_.slope, r, state.sloped_shift));
        const bool exists = StepCells::exists(bits, i / 2, k);
        plus.of[i / 2][k] = exists && above ? weight : 0.0f;
        minus.of[i / 2][k] = exists && !above ? weight : 0.0f;
      }
    }
    const PackedTwice<GatPart> first(row_dots[0], row_dots[1]);
    const PackedTwice<GatPart> second(row_dots[2], row_dots[3]);
    const std::uint32_t d[2] = {part_of_d(first.high, first.low),
                                part_of_d(second.high, second.low)};
    sides_[0].add(weigh, StepOperands<GatPart>(plus), d);
    sides_[1].add(weigh, StepOperands<GatPart>(minus), d);
  }
  __device__ void look_at(VertexId column) {
    const GatRowState state = *state_of(column);
    range_.add(state.shift);
    range_.add(state.sloped_shift);
  }
  __device__ bool fits() const { return __all_sync(~0u, range_.holds()) != 0; }

  __device__ void finish(const tiles::Piece& piece, bool by_factors) {
    wait_for_own_rows(piece, by_factors);
    const GatGradientResults<width, true> results(launch_, piece);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const Own own = {__shfl_sync(~0u, own_[half].side, 4 * (2 * WarpLane::quarter() + odd))};
        const float of_plus = by_factors ? own.factor() : 1.0f;
        const float of_minus = by_factors ? own.sloped_factor(launch_.slope) : 1.0f;
        const float sloped = launch_.slope * of_minus;
        const int place = OwnSumRows<width>::place_of(half, odd);
        float dot = 0;
#pragma unroll
        for (int chunk = 0; chunk < width / 64; ++chunk) {
          float value[8], plus[8], minus[8];
          own_values_.load(half, odd, chunk, value);
          sides_[0].rows.row(chunk, half, odd, plus);
          sides_[1].rows.row(chunk, half, odd, minus);
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            dot = fmaf(value[k], fmaf(sloped, minus[k], of_plus * plus[k]), dot);
            plus[k] = fmaf(of_minus, minus[k], of_plus * plus[k]);
          }
          results.store_features(place, chunk * 64 + WarpLane::group() * 8, plus);
        }
        // The high and the low part of D are rows of their own, of the first two groups of lanes.
        const float d = fmaf(of_plus, sides_[0].numbers[2 * half + odd],
                             sloped * sides_[1].numbers[2 * half + odd]);
        results.store_number(place, over_groups(dot - d));
      }
    }
    results.finish();
  }

 private:
  __device__ const GatRowState* state_of(VertexId target) const {
    return static_cast<const GatRowState*>(launch_.row_state) +
           std::int64_t{target} * launch_.heads + blockIdx.y;
  }
  /// D as an operand: its high parts are one row of 8, its low parts the next.
  __device__ static std::uint32_t part_of_d(std::uint32_t high, std::uint32_t low) {
    return WarpLane::group() == 0 ? high : WarpLane::group() == 1 ? low : 0u;
  }

  const TallAttentionLaunch& launch_;
  char* memory_;
  OwnSumRows<width> own_values_;
  GatRows gradients_;
  float4 state_;
  float exponent_ = 0;  ///< of the factor that this lane left for others
  GatPart next_term_[2];
  Own own_[2];  ///< of rows g and g + 8
  FactorRange range_;
  unsigned turn_ = 0;
  GatSideSums<width> sides_[2];  ///< with a plus, with a minus
};

/// Warps that an SM should hold, as registers and shared memory allow.
template <int width, bool by_rows>
inline constexpr int short_gat_gradient_blocks = width == 64 ? (by_rows ? 16 : 12) : 8;

template <int width, bool by_rows>
using ShortGatGradient =
    std::conditional_t<by_rows, ShortGatByRows<width>, ShortGatByColumns<width>>;

template <int width, bool by_rows>
__global__
__launch_bounds__(32, (short_gat_gradient_blocks<width, by_rows>)) void differentiate_short_gat(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGatGradient<width, by_rows>>(launch);
}

template <bool by_rows>
constexpr ShortAttentionFunctions make_short_gat_gradients() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortGatGradient<short_head_widths[i], by_rows>,
                       differentiate_short_gat<short_head_widths[i], by_rows>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
