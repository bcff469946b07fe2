// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rectified/launch.hpp"
#include "ops/attention/cuda/rectified/scores.cuh"
#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

/// GATv2 over windows of 64 rows: rows of sources and of V are gathered as for dot products.
namespace tessera::ops {

template <class T, int width>
class RectifiedWindows
    : public GatheredWindows<RectifiedWindows<T, width>, T, width, 2, 0, NoColumns> {
  using Windows = GatheredWindows<RectifiedWindows, T, width, 2, 0, NoColumns>;

 public:
  using Windows::heads;
  static_assert(heads == 1);

  __device__ RectifiedWindows(const TallAttentionLaunch& launch, char* shared)
      : Windows(launch, shared),
        scores_(static_cast<const T*>(launch.vector) + first_feature(), launch.slope) {}

  __device__ void begin_piece(const tiles::Piece& piece) {
    scores_.begin(piece, first_row(), static_cast<const T*>(launch_.target) + first_feature(),
                  launch_.target_stride);
    sums_[0] = {};
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    const std::uint32_t used = Scores::used_pairs(pattern);
#pragma unroll 1
    for (int step = 0; step < num_steps; step += 2) {
      const StepPattern cells[2] = {StepPattern(pattern, step), StepPattern(pattern, step + 1)};
      if (!cells[0].has_edges() && !cells[1].has_edges()) continue;
      PairScores scores;
      scores_.find(scores, rows_of(turn, 0), step, used);
      scores.settle(cells, sums_[0]);
      sums_[0].template add_wide<Rows>(scores.weights<StepWeights<T>>(0, sums_[0]),
                                       rows_of(turn, 1), step, 0);
      // Rows of V that the tile does not have are no numbers to multiply by 0.
      if (step + 1 < num_steps) {
        sums_[0].template add_wide<Rows>(scores.weights<StepWeights<T>>(1, sums_[0]),
                                         rows_of(turn, 1), step + 1, 0);
      }
    }
  }

  __device__ void finish(const tiles::Piece& piece) const {
    finish_piece<T, width>(launch_, piece, sums_);
  }
  __device__ void end() const {}

 private:
  using Scores = RectifiedScores<T, width>;
  using typename Windows::Rows;
  using Windows::first_feature;
  using Windows::first_row;
  using Windows::launch_;
  using Windows::rows_of;

  Scores scores_;
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
