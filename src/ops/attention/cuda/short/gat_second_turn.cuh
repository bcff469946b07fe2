// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_windows.cuh"
#include "ops/windows/vertex_terms.cuh"

/// Which pieces the factors of the backward pass of GAT serve for, and how the others are computed.
namespace tessera::ops {

/// The largest distance of exponents from the middle of those that factors may have; what is not a
/// number shows in the log_sum of its row, which is an own factor.
struct FactorRange {
  static constexpr float middle = (least_gat_exponent + largest_gat_exponent) / 2;
  static constexpr float reach = largest_gat_exponent - middle;
  float distance = 0;

  __device__ void add(float exponent) { distance = fmaxf(distance, fabsf(exponent - middle)); }
  __device__ bool holds() const { return distance <= reach; }
};

/// Pieces from `left` on for which factors do not serve, with nothing on its way meanwhile.
template <int width, class Pass>
__device__ void take_second_turn(Pass& pass, const WindowsLaunch& launch, const GatRows& gathered,
                                 std::int32_t left, std::int32_t end) {
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

}  // namespace tessera::ops
