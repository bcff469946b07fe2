// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_gradient_results.cuh"
#include "ops/attention/cuda/short/gat_second_turn.cuh"
#include "ops/attention/cuda/short/gat_sums.cuh"
#include "ops/attention/cuda/short/workers.cuh"

namespace tessera::ops {

/// The sweep over windows of sources: dr and dV.
template <int width>
class ShortGatByColumns : public ShortPass {
  /// What lanes leave for each other of two neighbouring columns: factors of either side in two
  /// parts, terms with a minus, and D in two parts.
  struct alignas(16) Pair {
    std::uint16_t high[2][2], low[2][2];  ///< of edges with a plus, then of those with a minus
    std::uint16_t minus_term[2], d_high[2], d_low[2], unused[2];
  };
  using Exchange = Pair[tiles::step_columns / 2];
  using Own = GatOwn<GatPart, false>;

 public:
  static constexpr int blocks = width == 64 ? 12 : 8;
  static constexpr int shared_bytes =
      GatWindows<width>::bytes + 2 * static_cast<int>(sizeof(Exchange)) + OwnSumRows<width>::bytes;

  __device__ ShortGatByColumns(const WindowsLaunch& launch, char* memory)
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
    for (int row = 0; row < 2; ++row) next_term_[row] = own_term(launch_, piece, row);
  }
  __device__ void begin_piece(const tiles::Piece& piece) {
    own_values_.start(piece);
    bool fails = false;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      own_[row] = {twice(next_term_[row])};
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

  const WindowsLaunch& launch_;
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

}  // namespace tessera::ops
