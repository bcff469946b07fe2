// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/window.cuh"

/// Scores scale * (Q[i] . K[j]) on tiles: rows of Q as fragments, rows of K gathered like those of
/// V.
namespace tessera::ops {

template <class T, int width, int heads>
class DotTiles {
 public:
  static constexpr int features = width * heads;
  using Rows = TileRows<features>;

  struct Stage {};
  static constexpr int stage_bytes = Rows::bytes;

  __device__ DotTiles(const TallAttentionLaunch& launch, int first_head)
      : launch_(launch), first_head_(first_head), unit_(launch.scale * log2_of_e) {}

  __device__ void begin_window(const tiles::Piece& piece) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * row;
      const T* const from = static_cast<const T*>(launch_.target) +
                            (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                            std::int64_t{first_head_} * width;
#pragma unroll
      for (int unit = 0; unit < features / 8; ++unit) {
        const int feature = unit * 8 + lane % 4 * 2;
        const bool exists = place < piece.num_rows && first_head_ + feature / width < launch_.heads;
        q_[unit][row] = exists ? __ldg(reinterpret_cast<const std::uint32_t*>(from + feature)) : 0u;
      }
    }
  }

  /// The rows of the next window should be near when it begins: each warp asks for its 16.
  __device__ void expect(const tiles::Piece& piece) const {
    const int place = static_cast<int>(threadIdx.x / 32) * 16 + static_cast<int>(threadIdx.x % 32);
    if (threadIdx.x % 32 >= 16 || place >= piece.num_rows) return;
    const T* const row = static_cast<const T*>(launch_.target) +
                         (std::int64_t{piece.first_row} + place) * launch_.target_stride +
                         std::int64_t{first_head_} * width;
    constexpr int line_features = 128 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int feature = 0; feature < features; feature += line_features) {
      cuda::expect_in_l2(row + feature);
    }
  }

  /// One head's scores of two steps of a tile. What lies beyond the end of the tile is anything.
  __device__ void scores(std::uint32_t keys, int h, int step, PairScores& scores) const {
#pragma unroll
    for (auto& group : scores.cells) {
#pragma unroll
      for (float& score : group) score = 0;
    }
    if constexpr (width == 8) {
      const std::uint32_t a[4] = {q_[h][0], q_[h][1], 0, 0};
      std::uint32_t blocks[4];
      Rows::load_rows_of_four(blocks, keys, 2 * step, h);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t b[2] = {blocks[i], 0};
        cuda::multiply_16x8<T>(scores.cells[i], a, b);
      }
    } else {
#pragma unroll
      for (int group = 0; group < 4; group += 2) {
#pragma unroll
        for (int k = 0; k < width / 16; ++k) {
          const int unit = h * (width / 8) + 2 * k;
          const std::uint32_t a[4] = {q_[unit][0], q_[unit][1], q_[unit + 1][0], q_[unit + 1][1]};
          std::uint32_t blocks[4];
          Rows::load_rows(blocks, keys, 2 * step + group, unit);
          const std::uint32_t first[2] = {blocks[0], blocks[1]};
          const std::uint32_t second[2] = {blocks[2], blocks[3]};
          cuda::multiply_16x8<T>(scores.cells[group], a, first);
          cuda::multiply_16x8<T>(scores.cells[group + 1], a, second);
        }
      }
    }
#pragma unroll
    for (auto& group : scores.cells) {
#pragma unroll
      for (float& score : group) score *= unit_;
    }
  }

 private:
  const TallAttentionLaunch& launch_;
  int first_head_;
  float unit_;
  std::uint32_t q_[features / 8][2];
};

}  // namespace tessera::ops
