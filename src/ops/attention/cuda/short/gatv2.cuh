// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/short/gatv2_scores.cuh"
#include "ops/attention/cuda/short/softmax.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// GATv2 over windows of 16 rows: a warp takes a window by itself, 16 columns at a time.
namespace tessera::ops {

template <class T, int width>
class ShortGatV2 : public ShortSoftmax<T, width> {
  using Softmax = ShortSoftmax<T, width>;
  using Scores = GatV2Scores<T, width, 2>;
  using Walk = StepWalk<ExchangedColumns>;

 public:
  static constexpr int shared_bytes = Scores::shared_bytes;

  __device__ ShortGatV2(const TallAttentionLaunch& launch, char* memory)
      : Softmax(launch),
        scores_(launch, memory),
        value_rows_(launch.value, launch.value_stride, width, WarpLane::group() * 8) {}

  /// Pieces [begin, end), be they of one window or another: while a step's weights are found, rows
  /// that the scores of the next are made of are on their way, and during a window the own rows of
  /// the next.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin == end) return;
    Walk walk(this->launch_, begin, end);
    Walk::Step step, next;
    start_own(begin, end);
    if (walk.advance(step)) scores_.load(step);
    next = step;
    walk.advance(next);
    for (std::int32_t i = begin; i < end; ++i) {
      Softmax::clear();
      cuda::wait_for_copies<0>();
      scores_.begin(i % 2);
      start_own(i + 1, end);
#pragma unroll 1
      for (int left = this->launch_.pieces[i].num_steps; left > 0; --left) {
        add(step, next, i % 2);
        step = next;
        walk.advance(next);
      }
      // Asked for again: registers are scarce during steps.
      const tiles::Piece piece = this->launch_.pieces[i];
      Softmax::finish(piece);
    }
  }

 private:
  __device__ void start_own(std::int32_t i, std::int32_t end) const {
    if (i < end) {
      const tiles::Piece piece = this->launch_.pieces[i];
      scores_.start_own(piece, i % 2);
    }
    cuda::commit_copies();
  }

  /// One step, and what the next will need first.
  __device__ void add(const Walk::Step& step, const Walk::Step& next, int turn) {
    StepCells cells;
    scores_.find(cells, used_rows(step.bits), turn);
    const StepColumns columns = step;
    WeightedRows values[chunks];
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) values[chunk].load(value_rows_, columns, chunk);
    scores_.load(next);
    Softmax::settle(cells, step.bits);
    const StepOperands<T> weights(cells);
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      this->sums_.add(weights, chunk, values[chunk].held);
    }
  }

  static constexpr int chunks = width / 64;

  Scores scores_;
  FeatureRows value_rows_;
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_gatv2_blocks = width == 64 ? 16 : 8;

template <class T, int width>
__global__ __launch_bounds__(32, (short_gatv2_blocks<width>)) void attend_short_gatv2(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGatV2<T, width>>(launch);
}

template <class T>
constexpr ShortAttentionFunctions make_short_gatv2() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortGatV2<T, short_head_widths[i]>,
                       attend_short_gatv2<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
