// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/results.cuh"

/// Dot products over windows of 64 rows, of 16 bits or fp32. Rows of Q are operands, those of K and
/// V are gathered. Weights are a high and a low part; so are Q, K and V of fp32, in bf16, and of
/// their products the one of two low parts is left out.
namespace tessera::ops {

template <class T, int width>
class WindowDots : public GatheredWindows<WindowDots<T, width>, T, width, 2, 0, NoColumns> {
  using Windows = GatheredWindows<WindowDots, T, width, 2, 0, NoColumns>;

 public:
  static constexpr int blocks = sizeof(T) == 2 ? 4 : width == 64 ? 2 : 3;
  using Windows::heads;
  using Windows::Windows;

  /// Takes rows of Q.
  __device__ void begin_piece(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = first_row() + lane() / 4 + 8 * row;
      const T* const from = static_cast<const T*>(launch_.target) +
                            (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                            first_feature();
#pragma unroll
      for (int u = 0; u < Planes::units; ++u) {
        const int feature = u * 8 + lane() % 4 * 2;
        const bool exists =
            place < piece.num_rows && first_head() + feature / width < launch_.heads;
        if constexpr (planes == 1) {
          q_[u][0][row] =
              exists ? __ldg(reinterpret_cast<const std::uint32_t*>(from + feature)) : 0u;
        } else {
          float2 pair = {0, 0};
          if (exists) pair = __ldg(reinterpret_cast<const float2*>(from + feature));
          const PackedTwice<Part> parts(pair.x * unit(), pair.y * unit());
          q_[u][0][row] = parts.high;
          q_[u][1][row] = parts.low;
        }
      }
    }
#pragma unroll
    for (HeadSums<Part, width>& head : sums_) head = {};
  }

  __device__ void expect(const WindowRows& rows) const {
    if constexpr (planes == 1) this->expect_rows(launch_.target, launch_.target_stride, rows);
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
        if constexpr (width == 8 && planes == 1) {
          std::uint32_t blocks[4];
          Rows::load_column_of_two(blocks, rows_of(turn, 1), step, h);
          sums_[h].multiply(0, scores.weights(0, sums_[h]), blocks[0], blocks[1]);
          if (both) sums_[h].multiply(0, scores.weights(1, sums_[h]), blocks[2], blocks[3]);
        } else {
          multiply(h, scores.weights(0, sums_[h]), rows_of(turn, 1), step);
          if (both) multiply(h, scores.weights(1, sums_[h]), rows_of(turn, 1), step + 1);
        }
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) const {
    finish_piece<T, features>(launch_, piece, sums_);
  }
  __device__ void end() const {}

 private:
  using typename Windows::Part;
  using typename Windows::Planes;
  using typename Windows::Rows;
  using Windows::features, Windows::first_feature, Windows::first_head, Windows::lane,
      Windows::launch_, Windows::first_row, Windows::rows_of, Windows::units;
  static constexpr int planes = Planes::planes;

  /// What makes scores powers of two: Q of fp32 is multiplied by it, else scores are.
  __device__ float unit() const { return launch_.scale * log2_of_e; }

  /// One head's scores of two steps. What lies beyond the end of the tile is anything.
  __device__ void find_scores(PairScores& scores, std::uint32_t keys, int h, int step) const {
#pragma unroll
    for (auto& group : scores.cells) {
#pragma unroll
      for (float& score : group) score = 0;
    }
    if constexpr (width == 8) {
      // Both parts of Q meet the high part of K at once, as eight features are half an operand.
      const std::uint32_t high[4] = {q_[h][0][0], q_[h][0][1], 0, 0};
      const std::uint32_t both[4] = {high[0], high[1], planes == 2 ? q_[h][planes - 1][0] : 0,
                                     planes == 2 ? q_[h][planes - 1][1] : 0};
      std::uint32_t blocks[4], low_blocks[4];
      Rows::load_rows_of_four(blocks, keys, 2 * step, Planes::unit_in(0, h));
      if constexpr (planes == 2) {
        Rows::load_rows_of_four(low_blocks, keys, 2 * step, Planes::unit_in(1, h));
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t b[2] = {blocks[i], planes == 2 ? blocks[i] : 0};
        if constexpr (planes == 2) {
          const std::uint32_t low_b[2] = {low_blocks[i], 0};
          cuda::multiply_16x8<Part>(scores.cells[i], high, low_b);
        }
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
          std::uint32_t blocks[4], low_blocks[4];
          Rows::load_rows(blocks, keys, 2 * step + group, Planes::unit_in(0, u));
          if constexpr (planes == 2) {
            Rows::load_rows(low_blocks, keys, 2 * step + group, Planes::unit_in(1, u));
          }
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
            if constexpr (planes == 2) {
              const std::uint32_t low[4] = {q_[u][1][0], q_[u][1][1], q_[u + 1][1][0],
                                            q_[u + 1][1][1]};
              const std::uint32_t low_b[2] = {low_blocks[2 * half], low_blocks[2 * half + 1]};
              cuda::multiply_16x8<Part>(scores.cells[group + half], high, low_b);
              cuda::multiply_16x8<Part>(scores.cells[group + half], low, b);
            }
            cuda::multiply_16x8<Part>(scores.cells[group + half], high, b);
          }
        }
      }
    }
    if constexpr (planes == 1) {
#pragma unroll
      for (auto& group : scores.cells) {
#pragma unroll
        for (float& score : group) score *= unit();
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
      const auto load = [&](std::uint32_t(&to)[4], int plane) {
        if constexpr (width == 8) {
          Rows::load_column(to, values, step, Planes::unit_in(plane, u));
        } else {
          Rows::load_columns(to, values, step, Planes::unit_in(plane, u));
        }
      };
      load(blocks, 0);
      if constexpr (planes == 2) load(low_blocks, 1);
#pragma unroll
      for (int half = 0; half < (width == 8 ? 1 : 2); ++half) {
        if constexpr (planes == 2) {
          const std::uint32_t low_b[2] = {low_blocks[2 * half], low_blocks[2 * half + 1]};
          cuda::multiply_16x8<Part>(head.features[k + half], weights.high, low_b);
        }
        head.multiply(k + half, weights, blocks[2 * half], blocks[2 * half + 1]);
      }
    }
  }

  std::uint32_t q_[Planes::units][planes][2];  ///< per unit: parts of the two rows
  HeadSums<Part, width> sums_[heads];
};

}  // namespace tessera::ops
