// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/short/fragments.cuh"
#include "ops/attention/cuda/short/results.cuh"
#include "ops/attention/cuda/short/workers.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// Dot products over windows of 16 rows: a warp takes a window by itself, 16 columns at a time.
namespace tessera::ops {

template <class T, int width>
class ShortDot {
 public:
  using Memory = typename OwnRows<T, width>::Memory;

  __device__ ShortDot(const TallAttentionLaunch& launch, Memory& memory)
      : launch_(launch),
        queries_(memory, launch.target, launch.target_stride),
        keys_(launch.source, launch.source_stride),
        value_rows_(launch.value, launch.value_stride, width, WarpLane::group() * 8),
        unit_(launch.scale * log2_of_e) {}

  /// Pieces [begin, end), be they of one window or another: while one step is computed, rows of the
  /// next are on their way.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin == end) return;
    StepWalk walk(launch_, begin, end);
    StepWalk::Step step;
    if (walk.advance(step)) {
      keys_.load(step);
      load_values(step);
    }
    std::uint32_t bits = step.bits;
    walk.advance(step);
    tiles::Piece piece = launch_.pieces[begin];
    load_queries(piece);
    for (std::int32_t i = begin; i < end; ++i) {
      clear();
      cuda::wait_for_copies<0>();
      for (int left = piece.num_steps; left > 0; --left) {
        StepCells cells;
        keys_.multiply(queries_, cells);
        keys_.load(step, 0);
        settle(cells, bits);
        bits = step.bits;
        add_values(cells, step);
        load_values(step);
        walk.advance(step);
      }
      const tiles::Piece done = piece;
      if (i + 1 < end) {
        piece = launch_.pieces[i + 1];
        load_queries(piece);
      }
      finish(done);
    }
  }

 private:
  static constexpr int chunks = width / 64;

  __device__ void load_queries(const tiles::Piece& piece) const {
    queries_.start(piece);
    cuda::commit_copies();
  }
  __device__ void load_values(const StepWalk::Step& step) {
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) values_[chunk].load(value_rows_, step, chunk);
  }

  __device__ void clear() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      base_[row] = lowest_base;
      sum_[row] = 0;
    }
#pragma unroll
    for (FeatureSums<T>& sums : sums_) sums.clear();
  }

  /// Scores become weights, of which cells without an edge have none; bases make room for the
  /// largest score of each row.
  __device__ void settle(StepCells& cells, std::uint32_t bits) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& cell = cells.of[i][k];
        cell = StepCells::exists(bits, i, k) ? cell * unit_ : -cuda::infinity;
        top[k / 2] = fmaxf(top[k / 2], cell);
      }
    }
#pragma unroll
    for (float& of_row : top) {
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 2));
    }
    if (__any_sync(~0u, must_rise(0, top[0]) || must_rise(1, top[1])) != 0) raise(top);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& cell = cells.of[i][k];
        cell = power_of_2(cell - base_[k / 2]);
        sum_[k / 2] += cell;
      }
    }
  }
  __device__ bool must_rise(int row, float top) const {
    return top > base_[row] + WeightRange<T>::slack;
  }
  __device__ void raise(const float (&top)[2]) {
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float base = must_rise(row, top[row]) ? top[row] : base_[row];
      factors[row] = power_of_2(base_[row] - base);
      base_[row] = base;
      sum_[row] *= factors[row];
    }
    float of_sums[2][2];
    to_sums(factors, of_sums);
#pragma unroll
    for (FeatureSums<T>& sums : sums_) sums.scale(of_sums);
  }
  /// A number of each row from the lanes that have its cells to those that have its sums.
  __device__ static void to_sums(const float (&of_cells)[2], float (&of_sums)[2][2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        of_sums[half][odd] = __shfl_sync(~0u, of_cells[half], 4 * (2 * WarpLane::quarter() + odd));
      }
    }
  }

  /// As registers of V become free, those of K are filled with rows of the next step.
  __device__ void add_values(const StepCells& weights, const StepWalk::Step& next) {
    const StepOperands<T> operands(weights);
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk) {
      sums_[chunk].add(operands, values_[chunk]);
      if (chunk + 1 < chunks) keys_.load(next, chunk + 1);
    }
  }

  __device__ void finish(const tiles::Piece& piece) const {
    const ShortResults<T, width> results(launch_, piece);
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float total = sum_[row] + __shfl_xor_sync(~0u, sum_[row], 1);
      total += __shfl_xor_sync(~0u, total, 2);
      factors[row] =
          results.settle(WarpLane::group() + 8 * row, base_[row], total, WarpLane::quarter() == 0);
    }
    float of_sums[2][2];
    to_sums(factors, of_sums);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
#pragma unroll
        for (int chunk = 0; chunk < chunks; ++chunk) {
          float features[8];
          sums_[chunk].row(half, odd, features);
          results.store(8 * half + 2 * WarpLane::quarter() + odd,
                        chunk * 64 + WarpLane::group() * 8, features, of_sums[half][odd]);
        }
      }
    }
    results.finish();
  }

  const TallAttentionLaunch& launch_;
  OwnRows<T, width> queries_;
  MetRows<T, width> keys_;
  FeatureRows value_rows_;
  float unit_;
  WeightedRows<T> values_[chunks];
  float base_[2], sum_[2];  ///< of rows g and g + 8, the sums over this lane's columns
  FeatureSums<T> sums_[chunks];
};

/// Blocks that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_attention_blocks = width == 64 ? 8 : 4;

template <class T, int width>
__global__ __launch_bounds__(
    short_attention_warps * 32,
    (short_attention_blocks<width>)) void attend_short_windows(const TallAttentionLaunch launch) {
  __shared__ typename ShortDot<T, width>::Memory memory;
  run_short_windows<ShortDot<T, width>>(launch, memory);
}

template <class T>
constexpr ShortAttentionFunctions make_short_dots() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<attend_short_windows<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
