// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rectified/launch.hpp"
#include "ops/attention/cuda/rectified/scores.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

/// GATv2 over windows of 64 rows: rows of sources and of V are gathered as for dot products, and
/// sources become fp16 where they lie. A tile that fp16 does not serve for takes its scores from
/// memory, in fp32.
namespace tessera::ops {

template <class T, int width>
class RectifiedWindows
    : public GatheredWindows<RectifiedWindows<T, width>, T, width, 2, 0, NoColumns> {
  using Windows = GatheredWindows<RectifiedWindows, T, width, 2, 0, NoColumns>;

 public:
  using Windows::heads;
  static_assert(heads == 1);

  __device__ RectifiedWindows(const TallAttentionLaunch& launch, char* shared)
      : Windows(launch, shared), scores_(launch, first_feature()) {}

  __device__ void begin_piece(const tiles::Piece& piece) {
    step_ = piece.first_step;
    row_ = std::int64_t{piece.first_row} + first_row() + lane() / 4;
    const T* const first =
        static_cast<const T*>(launch_.target) + row_ * launch_.target_stride + first_feature();
    const int place = first_row() + lane() / 4;
    const bool exist[2] = {place < piece.num_rows, place + 8 < piece.num_rows};
    scores_.take_rows(first, launch_.target_stride, exist);
    sums_[0] = {};
  }

  /// What this thread has brought of a tile.
  __device__ void cut(int turn, int num_rows) {
    Fp16Pairs<T> pairs;
#pragma unroll
    for (int i = 0; i < Planes::share; ++i) {
      const int row = Rows::row_of_thread(i);
      if (row >= num_rows) continue;
      const int unit = static_cast<int>(threadIdx.x) % Rows::units;
      auto* const at = reinterpret_cast<uint4*>(memory_of(turn, 0) + Rows::offset(row, unit));
      const uint4 converted = pairs.convert(*at);
      if constexpr (!std::is_same_v<T, __half>) *at = converted;
    }
    const unsigned largest = pairs.largest_of_warp();
    if (lane() == 0) tops()[turn % num_stages][threadIdx.x / 32] = largest;
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    const bool packed = scores_.serves(magnitude_of_bits(top_of(turn)));
    const std::uint32_t used = Scores::used_pairs(pattern);
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      PairScores scores;
      if (packed) {
        scores_.find(scores, rows_of(turn, 0), step, used >> (8 * step));
      } else {
        find_in_memory(scores, step_ + step, cells);
      }
      scores.settle(cells, sums_[0]);
      sums_[0].template add_wide<Rows>(scores.weights(0, sums_[0]), rows_of(turn, 1), step, 0);
      // Rows of V that the tile does not have are no numbers to multiply by 0.
      if (step + 1 < num_steps) {
        sums_[0].template add_wide<Rows>(scores.weights(1, sums_[0]), rows_of(turn, 1), step + 1,
                                         0);
      }
    }
    step_ += tile_steps;
  }

  __device__ void finish(const tiles::Piece& piece) const {
    finish_piece<T, width>(launch_, piece, sums_);
  }
  __device__ void end() const {}

 private:
  using Scores = RectifiedScores<T, width>;
  using typename Windows::Planes;
  using typename Windows::Rows;
  using Windows::first_feature;
  using Windows::first_row;
  using Windows::lane;
  using Windows::launch_;
  using Windows::memory_of;
  using Windows::num_stages;
  using Windows::rows_of;
  using Windows::tile_steps;
  static constexpr int num_warps = tall_attention_threads / 32;

  /// The largest magnitudes that the warps have brought, as bits of fp16.
  using Tops = unsigned[num_warps];
  __device__ static Tops* tops() {
    __shared__ Tops tops[num_stages];
    return tops;
  }
  __device__ static unsigned top_of(int turn) {
    unsigned top = 0;
#pragma unroll
    for (int warp = 0; warp < num_warps; ++warp) {
      const unsigned other = tops()[turn % num_stages][warp];
      top = top > other ? top : other;
    }
    return top;
  }

  /// Scores of two steps in fp32, cell by cell, of the edges alone.
  __device__ void find_in_memory(PairScores& scores, std::int32_t step,
                                 const StepPattern (&cells)[2]) const {
    const VertexId* const columns = launch_.columns + std::int64_t{step} * tiles::step_columns;
#pragma unroll 1
    for (int cell = 0; cell < 16; ++cell) {
      const int group = cell / 4;
      const int row = cell / 2 % 2;
      const int odd = cell % 2;
      float score = 0;
      if (cells[group / 2].has(group % 2 * 2 + row, odd)) {
        score = score_in_memory(row_ + 8 * row, __ldg(columns + group * 8 + lane() % 4 * 2 + odd));
      }
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        if (i == cell) scores.cells[i / 4][i % 4] = score;
      }
    }
  }
  __device__ float score_in_memory(std::int64_t row, std::int64_t column) const {
    const T* const x =
        static_cast<const T*>(launch_.target) + row * launch_.target_stride + first_feature();
    const T* const y =
        static_cast<const T*>(launch_.source) + column * launch_.source_stride + first_feature();
    const T* const a = static_cast<const T*>(launch_.vector) + first_feature();
    float sum = 0;
#pragma unroll 4
    for (int i = 0; i < width; ++i) {
      const float z = cuda::widen(__ldg(x + i)) + cuda::widen(__ldg(y + i));
      sum = fmaf(cuda::widen(__ldg(a + i)), z > 0 ? z : launch_.slope * z, sum);
    }
    return sum * log2_of_e;
  }

  Scores scores_;
  std::int32_t step_;  ///< the first of the next tile
  std::int64_t row_;   ///< row g
  HeadSums<T, width> sums_[1];
};

/// Blocks that an SM should hold, as their registers allow.
constexpr int rectified_blocks(int width) { return width == 128 ? 2 : width == 64 ? 3 : 4; }

template <class T, int width>
__global__ __launch_bounds__(tall_attention_threads, rectified_blocks(width)) void attend_rectified(
    const TallAttentionLaunch launch) {
  run_gathered_windows<RectifiedWindows<T, width>>(launch);
}

template <class T, std::size_t... i>
constexpr RectifiedFunctions make_rectified(std::index_sequence<i...>) {
  return {gathered_function<RectifiedWindows<T, rectified_widths[i]>,
                            attend_rectified<T, rectified_widths[i]>>()...};
}

}  // namespace tessera::ops
