// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/short/direct_rows.cuh"
#include "ops/attention/cuda/short/softmax.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// Dot products over windows of 16 rows: a warp takes a window by itself, 16 columns at a time.
namespace tessera::ops {

template <class T, int width>
class ShortDot : public ShortSoftmax<T, width> {
  using Softmax = ShortSoftmax<T, width>;

 public:
  static constexpr int shared_bytes = 2 * OwnRows<width>::bytes + HeldPieces::bytes;

  __device__ ShortDot(const TallAttentionLaunch& launch, char* memory)
      : Softmax(launch),
        queries_(memory, launch.target, launch.target_stride),
        pieces_(memory + 2 * OwnRows<width>::bytes),
        keys_(launch.source, launch.source_stride),
        value_rows_(launch.value, launch.value_stride, width, WarpLane::group() * 8),
        unit_(launch.scale * log2_of_e) {}

  /// Pieces [begin, end), be they of one window or another: while one step is computed, rows of the
  /// next are on their way, and during a window the own rows of the next.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin == end) return;
    Walk walk(this->launch_, begin, end);
    tiles::Piece piece = this->launch_.pieces[begin];
    start_queries(piece, begin, end);
    Walk::Step step;
    if (walk.advance(step)) {
      keys_.load(step);
      load_values(step);
    }
    std::uint32_t bits = step.bits();
    walk.advance(step);
    for (std::int32_t i = begin; i < end; ++i) {
      tiles::Piece next;
      if (i + 1 < end) next = this->launch_.pieces[i + 1];
      Softmax::clear();
      cuda::wait_for_copies<0>();
      for (int left = piece.num_steps; left > 0; --left) {
        StepCells cells;
        keys_.multiply(queries_, i % 2, cells);
        // All that was asked for has arrived: what is to be known of it is found before more is.
        const std::uint32_t next_bits = step.bits();
        const bool found = walk.find();
        __syncwarp();
        if (left == piece.num_steps) start_queries(next, i + 1, end);
        add(cells, bits, step);
        if (found) walk.load(step);
        bits = next_bits;
      }
      if (piece.num_steps == 0) {
        start_queries(next, i + 1, end);
        __syncwarp();
      }
      const tiles::Piece done = pieces_.load(i % 2);
      Softmax::finish(done);
      piece = next;
    }
  }

 private:
  using Walk = StepWalk<StepColumns>;
  static constexpr int chunks = width / 64;

  __device__ void start_queries(const tiles::Piece& piece, std::int32_t i, std::int32_t end) const {
    if (i < end) {
      queries_.start(piece, i % 2);
      pieces_.start(this->launch_.pieces + i, i % 2);
    }
    cuda::commit_copies();
  }
  __device__ void load_values(const StepColumns& columns) {
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) values_[chunk].load(value_rows_, columns, chunk);
  }

  /// One step of which the products are known; `next` are the columns of that after it.
  __device__ void add(StepCells& cells, std::uint32_t bits, const StepColumns& next) {
    keys_.load(next, 0);
    cells.scale(unit_);
    Softmax::settle(cells, bits);
    const StepOperands<T> weights(cells);
    // As registers of V become free, those of K are filled.
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      this->sums_.add(weights, chunk, values_[chunk].held);
      if (chunk + 1 < chunks) keys_.load(next, chunk + 1);
    }
    load_values(next);
  }

  OwnRows<width> queries_;
  HeldPieces pieces_;
  MetRows<T, width> keys_;
  FeatureRows value_rows_;
  float unit_;
  WeightedRows values_[chunks];
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_attention_blocks = width == 64 ? 16 : 8;

template <class T, int width>
__global__ __launch_bounds__(32, (short_attention_blocks<width>)) void attend_short_windows(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortDot<T, width>>(launch);
}

template <class T>
constexpr ShortAttentionFunctions make_short_dots() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortDot<T, short_head_widths[i]>,
                       attend_short_windows<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
