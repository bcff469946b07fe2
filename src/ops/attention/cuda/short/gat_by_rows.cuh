// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_gradient_results.cuh"
#include "ops/attention/cuda/short/gat_second_turn.cuh"
#include "ops/attention/cuda/short/gat_sums.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// The backward pass of GAT over windows of 16 rows in bf16, by the formulas of
/// tall/factored_gradient.cuh: gathered rows are summed with the factors of their columns, the
/// edges of either sign apart, and the factors of the own vertices come out of the sums. Pieces
/// with extreme factors take a second turn, by an exponential per cell.
namespace tessera::ops {

/// The sweep over windows of targets: dl, and the states of targets for the other sweep.
template <int width>
class ShortGatByRows : public ShortPass {
  /// What lanes leave for each other of two neighbouring columns: their factors in two parts, and
  /// their terms with a minus.
  struct alignas(16) Pair {
    std::uint16_t high[2], low[2], minus_term[2], unused[2];
  };
  using Exchange = Pair[tiles::step_columns / 2];
  using Own = GatOwn<GatPart, true>;

 public:
  static constexpr int blocks = width == 64 ? 16 : 8;
  static constexpr int shared_bytes = GatWindows<width>::bytes +
                                      2 * static_cast<int>(sizeof(Exchange)) +
                                      2 * OwnSumRows<width>::bytes;

  __device__ ShortGatByRows(const WindowsLaunch& launch, char* memory)
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
      next_term_[row] = own_term(launch_, piece, row);
      next_log_sum_[row] = own_log_sum(launch_, piece, row);
    }
  }
  __device__ void begin_piece(const tiles::Piece& piece) {
    gradients_.start(piece);
    outputs_.start(piece);
    bool fails = false;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      own_[row] = {twice(next_term_[row]), next_log_sum_[row] * log2_of_e};
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
    sums_.add(weigh, weights);
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
    sums_.add(weigh, StepOperands<GatPart>(cells));
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
  const WindowsLaunch& launch_;
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

}  // namespace tessera::ops
