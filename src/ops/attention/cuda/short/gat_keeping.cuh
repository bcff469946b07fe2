// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_keeping_results.cuh"
#include "ops/attention/cuda/short/gat_own_terms.cuh"
#include "ops/attention/cuda/short/gat_sums.cuh"

/// The forward pass of GAT over windows of 16 rows in bf16 that keeps what spares the backward pass
/// its sweep over rows. With l and r in powers of two, F = 2^((1 - slope) l) and sums over either
/// side apart, of 2^r with a plus and of 2^(slope r) with a minus, relative to 2^(slope l)
///
///     sum of weights = F sum+ 2^r + sum- 2^(slope r)
///     O  = (F sum+ 2^r V + sum- 2^(slope r) V) / sum of weights,   O+ = F sum+ 2^r V / the same
///
/// so that a cell costs no more than to choose a side. Pieces with terms so large that factors
/// would lie far apart take a second turn, by an exponential per cell.
namespace tessera::ops {

/// Of each column its factors with a plus and with a minus, in two parts, and its term with a
/// minus.
struct alignas(16) KeptFactors {
  std::uint32_t factors[tiles::step_columns][2];
  std::uint16_t minus_terms[tiles::step_columns];
};

template <int width>
class ShortGatKeeping
    : public GatForward<ShortGatKeeping<width>, KeepingLaunch, GatPart, width, KeptFactors> {
  using Forward = GatForward<ShortGatKeeping, KeepingLaunch, GatPart, width, KeptFactors>;
  using Forward::launch_, Forward::own_;

 public:
  static constexpr int blocks = 12;
  using Forward::Forward;

  __device__ void begin_piece(const tiles::Piece&) {
    this->take_own();
#pragma unroll
    for (GatSideSums<width>& side : sides_) side.clear();
  }
  __device__ void share() {
    KeptFactors& exchange = this->next_exchange();
    const int side = WarpLane::number() / 16;
    exchange.factors[brought_column()][side] = two_parts(this->shared_factor());
    if (side == 0) {
      exchange.minus_terms[brought_column()] =
          __bfloat16_as_ushort(cuda::narrow<GatPart>(-this->shared_term_));
    }
  }

  template <class Weigh>
  __device__ void add(std::uint32_t bits, Weigh&& weigh) {
    const KeptFactors& exchange = this->exchange();
    const TilePattern pattern{bits};
    StepOperands<GatPart> plus, minus;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int pair = WarpLane::quarter() + 4 * i;
      // Of two columns: with a plus and with a minus, of the next likewise.
      const uint4 factors = reinterpret_cast<const uint4*>(exchange.factors)[pair];
      const std::uint32_t minus_terms =
          reinterpret_cast<const std::uint32_t*>(exchange.minus_terms)[pair];
      const std::uint32_t high[2] = {__byte_perm(factors.x, factors.z, 0x5410),
                                     __byte_perm(factors.y, factors.w, 0x5410)};
      const std::uint32_t low[2] = {__byte_perm(factors.x, factors.z, 0x7632),
                                    __byte_perm(factors.y, factors.w, 0x7632)};
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const std::uint32_t edges = pattern.mask(2 * i + row);
        const std::uint32_t above = SideTerms<GatPart>::plus(twice(own_.raw[row]), minus_terms);
        mask_factors(plus, row, i, high[0], low[0], edges & above);
        mask_factors(minus, row, i, high[1], low[1], edges & ~above);
      }
    }
    add_weighted(weigh, plus, minus);
  }

  __device__ void finish(const tiles::Piece& piece, bool) const {
    float factors[2], bases[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      factors[row] = power_of_2((1 - launch_.slope) * own_.l(row));
      bases[row] = fmaf(launch_.slope, own_.l(row), FactoredTerms::base);
    }
    store(piece, factors, bases);
  }

  /// With nothing on its way meanwhile: the largest score of each row first, then the weights.
  __device__ void attend_by_exponentials(const tiles::Piece& piece) {
    this->load_own(piece);
    begin_piece(piece);
    float tops[2] = {lowest_base, lowest_base};
    each_cell_of_steps(
        piece, [&](float score, bool, int row, int, int) { tops[row] = fmaxf(tops[row], score); },
        [](const VertexId*) {});
#pragma unroll
    for (float& top : tops) {
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    }
    StepCells plus, minus;
    each_cell_of_steps(
        piece,
        [&](float score, bool above, int row, int i, int k) {
          const float weight = power_of_2(score - tops[row]);
          plus.of[i][k] = above ? weight : 0.0f;
          minus.of[i][k] = above ? 0.0f : weight;
        },
        [&](const VertexId* columns) {
          add_weighted(
              [&](auto& sums, const auto& weights) {
                add_rows_now(sums, weights, this->values_, columns);
              },
              StepOperands<GatPart>(plus), StepOperands<GatPart>(minus));
        });
    const float ones[2] = {1, 1};
    store(piece, ones, tops);
  }

 private:
  template <class Weigh>
  __device__ void add_weighted(Weigh&& weigh, const StepOperands<GatPart>& plus,
                               const StepOperands<GatPart>& minus) {
    sides_[0].add(weigh, plus);
    sides_[1].add(weigh, minus);
  }

  /// `factors` of the sums with a plus and `bases` are of rows g and g + 8.
  __device__ void store(const tiles::Piece& piece, const float (&factors)[2],
                        const float (&bases)[2]) const {
    const KeepingResults<width> results(launch_, piece);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int place = OwnSumRows<width>::place_of(half, odd);
        const float of_plus = to_sum_row(factors[half], odd);
        const float base = to_sum_row(bases[half], odd);
        const float above = of_plus * sides_[0].numbers[2 * half + odd];
        const float sum = above + sides_[1].numbers[2 * half + odd];
        const float factor = results.settle(place, {sum == 0 ? lowest_base : base, sum, above},
                                            WarpLane::group() == 0);
#pragma unroll
        for (int chunk = 0; chunk < width / 64; ++chunk) {
          float plus[8], all[8];
          sides_[0].rows.row(chunk, half, odd, plus);
          sides_[1].rows.row(chunk, half, odd, all);
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            plus[k] *= of_plus;
            all[k] += plus[k];
          }
          results.store(place, chunk * 64 + WarpLane::group() * 8, all, plus, factor);
        }
      }
    }
    results.finish();
  }

  /// Calls `visit(score, above, row, i, k)` for each of this lane's cells of[i][k] of a step, of
  /// scores in powers of two and -inf where there is no edge, then `after(columns)`.
  template <class Visit, class After>
  __device__ void each_cell_of_steps(const tiles::Piece& piece, Visit&& visit,
                                     After&& after) const {
    for (int step = 0; step < piece.num_steps; ++step) {
      const VertexId* const columns =
          launch_.columns + (std::int64_t{piece.first_step} + step) * tiles::step_columns;
      const std::uint32_t word =
          launch_.words[(std::int64_t{piece.first_tile} + step / 4) * 32 + WarpLane::number()];
      const std::uint32_t bits = word >> (4 * (step % 4));
#pragma unroll
      for (int cell = 0; cell < 4; ++cell) {
        const float r = gat_power(cuda::widen(gat_term<GatPart>(
            launch_.source, launch_.source_stride, columns[column_of_cell(cell)])));
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const int k = 2 * row + cell % 2;
          const float sum = own_.l(row) + r;
          const float score = sum > 0 ? sum : launch_.slope * sum;
          const bool exists = StepCells::exists(bits, cell / 2, k);
          visit(exists ? score : -cuda::infinity, sum > 0, row, cell / 2, k);
        }
      }
      after(columns);
    }
  }

  GatSideSums<width> sides_[2];  ///< with a plus, with a minus
};

}  // namespace tessera::ops
