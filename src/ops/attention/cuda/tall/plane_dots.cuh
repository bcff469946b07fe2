// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

/// Dot products of fp32 over windows of 64 rows: Q, K, V and weights are each a high and a low part
/// in bf16, and of their products the one of two low parts is left out.
namespace tessera::ops {

template <int width>
class PlaneDots : public GatheredWindows<PlaneDots<width>, float, width, 2, 0, NoColumns> {
  using Windows = GatheredWindows<PlaneDots, float, width, 2, 0, NoColumns>;

 public:
  using Windows::heads;
  using Windows::Windows;

  /// Rows of Q as operands, times what makes scores powers of two.
  __device__ void begin_piece(const tiles::Piece& piece) {
    const float unit = launch_.scale * log2_of_e;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = first_row() + lane() / 4 + 8 * row;
      const float* const from = static_cast<const float*>(launch_.target) +
                                (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                                first_feature();
#pragma unroll
      for (int u = 0; u < Planes::units; ++u) {
        const int feature = u * 8 + lane() % 4 * 2;
        const bool exists =
            place < piece.num_rows && first_head() + feature / width < launch_.heads;
        float2 pair = {0, 0};
        if (exists) pair = __ldg(reinterpret_cast<const float2*>(from + feature));
        const PackedTwice<Part> parts(pair.x * unit, pair.y * unit);
        q_[u][0][row] = parts.high;
        q_[u][1][row] = parts.low;
      }
    }
#pragma unroll
    for (HeadSums<Part, width>& head : sums_) head = {};
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      // Rows of V that the tile does not have are no numbers to multiply by 0.
      const bool both = step + 1 < num_steps;
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        PairScores scores;
        find_scores(scores, rows_of(turn, 0), h, step);
        scores.settle(cells, sums_[h]);
        multiply(h, scores.weights(0, sums_[h]), rows_of(turn, 1), step);
        if (both) multiply(h, scores.weights(1, sums_[h]), rows_of(turn, 1), step + 1);
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) const {
    finish_piece<float, features>(launch_, piece, sums_);
  }
  __device__ void end() const {}

 private:
  using typename Windows::Part;
  using typename Windows::Planes;
  using typename Windows::Rows;
  using Windows::features;
  using Windows::first_feature;
  using Windows::first_head;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::rows_of;
  using Windows::units;

  /// One head's scores of two steps. What lies beyond the end of the tile is anything.
  __device__ void find_scores(PairScores& scores, std::uint32_t keys, int h, int step) const {
#pragma unroll
    for (auto& group : scores.cells) {
#pragma unroll
      for (float& score : group) score = 0;
    }
    if constexpr (width == 8) {
      // Both parts of Q meet the high part of K at once, as eight features are half an operand.
      const std::uint32_t both[4] = {q_[h][0][0], q_[h][0][1], q_[h][1][0], q_[h][1][1]};
      const std::uint32_t high[4] = {q_[h][0][0], q_[h][0][1], 0, 0};
      std::uint32_t blocks[4], low_blocks[4];
      Rows::load_rows_of_four(blocks, keys, 2 * step, Planes::unit_in(0, h));
      Rows::load_rows_of_four(low_blocks, keys, 2 * step, Planes::unit_in(1, h));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t b[2] = {blocks[i], blocks[i]};
        const std::uint32_t low_b[2] = {low_blocks[i], 0};
        cuda::multiply_16x8<Part>(scores.cells[i], high, low_b);
        cuda::multiply_16x8<Part>(scores.cells[i], both, b);
      }
    } else {
#pragma unroll
      for (int group = 0; group < 4; group += 2) {
#pragma unroll
        for (int k = 0; k < units; k += 2) {
          const int u = h * units + k;
          const std::uint32_t high[4] = {q_[u][0][0], q_[u][0][1], q_[u + 1][0][0],
                                         q_[u + 1][0][1]};
          const std::uint32_t low[4] = {q_[u][1][0], q_[u][1][1], q_[u + 1][1][0], q_[u + 1][1][1]};
          std::uint32_t blocks[4], low_blocks[4];
          Rows::load_rows(blocks, keys, 2 * step + group, Planes::unit_in(0, u));
          Rows::load_rows(low_blocks, keys, 2 * step + group, Planes::unit_in(1, u));
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
            const std::uint32_t low_b[2] = {low_blocks[2 * half], low_blocks[2 * half + 1]};
            cuda::multiply_16x8<Part>(scores.cells[group + half], high, low_b);
            cuda::multiply_16x8<Part>(scores.cells[group + half], low, b);
            cuda::multiply_16x8<Part>(scores.cells[group + half], high, b);
          }
        }
      }
    }
  }

  __device__ void multiply(int h, const StepWeights<Part>& weights, std::uint32_t values,
                           int step) {
    HeadSums<Part, width>& head = sums_[h];
#pragma unroll
    for (int k = 0; k < units; k += 2) {
      const int u = h * units + k;
      std::uint32_t blocks[4], low_blocks[4];
      if constexpr (width == 8) {
        Rows::load_column(blocks, values, step, Planes::unit_in(0, u));
        Rows::load_column(low_blocks, values, step, Planes::unit_in(1, u));
      } else {
        Rows::load_columns(blocks, values, step, Planes::unit_in(0, u));
        Rows::load_columns(low_blocks, values, step, Planes::unit_in(1, u));
      }
#pragma unroll
      for (int half = 0; half < (width == 8 ? 1 : 2); ++half) {
        const std::uint32_t low_b[2] = {low_blocks[2 * half], low_blocks[2 * half + 1]};
        cuda::multiply_16x8<Part>(head.features[k + half], weights.high, low_b);
        head.multiply(k + half, weights, blocks[2 * half], blocks[2 * half + 1]);
      }
    }
  }

  std::uint32_t q_[Planes::units][2][2];  ///< per unit: high and low parts of the two rows
  HeadSums<Part, width> sums_[heads];
};

/// Blocks that an SM should hold, as their registers and shared memory allow.
constexpr int plane_dot_blocks(int width) { return width == 64 ? 2 : 3; }

template <int width>
__global__ __launch_bounds__(tall_attention_threads, plane_dot_blocks(width)) void attend_planes(
    const TallAttentionLaunch launch) {
  run_gathered_windows<PlaneDots<width>>(launch);
}

template <std::size_t... i>
constexpr PlaneDotFunctions make_plane_dots(std::index_sequence<i...>) {
  return {
      gathered_function<PlaneDots<tall_head_widths[i]>, attend_planes<tall_head_widths[i]>>()...};
}

}  // namespace tessera::ops
