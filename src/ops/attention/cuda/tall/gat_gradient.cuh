// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/gradient_results.cuh"
#include "ops/windows/vertex_terms.cuh"

/// The backward pass of GAT by factors of columns, over windows of 64 rows. With P the weights, s
/// the slope, D = dO . O of a target, and sums over edges of which those with a plus have
/// l[i] + r[j] > 0,
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

/// What such passes have in common beside their tiles.
template <class Pass, class T, int width, bool by_rows, class Columns,
          int num_stages = gathered_stages<T, width>, int block_heads = tall_block_heads(width)>
class GatGradient : public GatheredWindows<Pass, T, width, 1, 0, Columns, num_stages, block_heads> {
  using Windows = GatheredWindows<Pass, T, width, 1, 0, Columns, num_stages, block_heads>;

 public:
  using Windows::heads, Windows::Windows;

  __device__ void expect(const WindowRows& rows) const {
    this->template expect_gradients<by_rows>(rows);
  }

 protected:
  using Windows::all_features, Windows::features, Windows::first_feature, Windows::first_head,
      Windows::lane, Windows::launch_, Windows::place_of;
  static constexpr int num_sides = by_rows ? 1 : 2;  ///< with a plus, with a minus

  // The two rows of this lane.

  __device__ void set_rows(const tiles::Piece& piece) {
    row_ = std::int64_t{piece.first_row} + place_of(0);
    num_rows_ = piece.num_rows;
  }
  __device__ bool exists(int row) const { return place_of(row) < num_rows_; }

  /// The weights of edges themselves on either side: `exponents(column, row)` is of one of them.
  template <class Weights, class Exponents>
  __device__ static void find_exponentials(Weights (&weights)[num_sides], const StepPattern& cells,
                                           int step, Exponents&& exponents) {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int column = step * tiles::step_columns + place / 2 * 8 + lane() % 4 * 2;
      float pairs[2][2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const GatExponents of_cell = exponents(column + odd, place % 2);
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

  /// Where gradients of terms go, and by columns those of features.
  using Results = GradientResults<T, num_sides>;
  __device__ Results results() const {
    GradientMatrix matrices[num_sides];
    matrices[0] = {launch_.score_gradient, launch_.score_gradient_stride, 1.0f,
                   BlockColumns(first_head(), heads, static_cast<int>(launch_.heads))};
    if constexpr (!by_rows) {
      matrices[0].slot_at = all_features();
      matrices[1] = {launch_.output, launch_.output_stride, 1.0f,
                     BlockColumns(first_feature(), features, all_features())};
    }
    return Results(launch_, matrices);
  }

  std::int64_t row_;  ///< row g of this lane
  std::int32_t num_rows_;
};

}  // namespace tessera::ops
