// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/group_dots.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

/// The forward pass of dot products with heads of 64 or 128 16-bit features over windows of 64
/// rows. Groups of four warps multiply at once, own rows with those of sources for the scores of a
/// tile, then weights with the rows of V; the matrix unit reads gathered rows where they lie.
namespace tessera::ops {

template <class T, int width, int num_stages>
class DotGroups : public GatheredWindows<DotGroups<T, width, num_stages>, T, width, 2, 1, NoColumns,
                                         num_stages> {
  using Windows = GatheredWindows<DotGroups, T, width, 2, 1, NoColumns, num_stages>;

 public:
  using Windows::heads;
  static constexpr bool by_groups = MatrixRows<T, width>::by_groups;
  static_assert(heads == 1);

  __device__ DotGroups(const TallAttentionLaunch& launch, char* shared)
      : Windows(launch, shared), unit_(launch.scale * log2_of_e) {}

  __device__ void begin_piece(const tiles::Piece& piece) {
    // Whoever is behind still reads the rows of the last window.
    __syncthreads();
    this->bring_own(0, piece, launch_.target, launch_.target_stride);
    sums_[0] = {};
  }
  __device__ void expect(const BegunRows& begun) const {
    this->expect_rows(launch_.target, launch_.target_stride, begun);
  }

  __device__ void add(int turn, const TilePattern& pattern, int num_steps) {
    with_constant_steps(num_steps, [&](auto steps) { add_tile<steps>(turn, pattern); });
  }

  __device__ void finish(const tiles::Piece& piece) {
    // Products with ones are complete in every lane.
    if (lane() % 4 != 0) sums_[0].sum[0] = sums_[0].sum[1] = 0;
    finish_piece<T, width>(launch_, piece, sums_);
  }
  __device__ void end() const {}

 private:
  using Windows::lane;
  using Windows::launch_;
  using Windows::own_memory;
  using Windows::rows_of;
  using Products = MatrixRows<T, width>;
  using Dots = GroupDots<T, width>;

  template <int steps>
  __device__ void add_tile(int turn, const TilePattern& pattern) {
    // Rows are read in pairs of steps; what lies beyond the end of the tile is anything, and no
    // cell is made of it.
    constexpr int even_steps = (steps + 1) / 2 * 2;
    TileCells<even_steps> scores;
    auto& sums = reinterpret_cast<typename Products::Sums&>(sums_[0].features);
    Dots::ask(scores, cuda::shared_address(own_memory(0)), rows_of(turn, 0));
    Dots::wait(scores);
    make_room<steps>(scores.of, pattern);
    Products::begin(sums);
    StepWeights<T> weights[steps];
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      weights[step] = weights_of(scores.of + 2 * step, pattern, step);
      Products::begin_step(weights[step]);
      Products::add(sums, weights[step], rows_of(turn, 1), 0, step);
      Products::commit();
      add_weights(weights[step]);
    }
    Products::wait(sums);
  }

  /// Bases rise to the largest score of each row. That no cell asks for it, be there an edge or
  /// not, is known sooner.
  template <int steps, int groups>
  __device__ void make_room(const float (&scores)[groups][4], const TilePattern& pattern) {
    float most[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 8 * steps; ++i) {
      float& of_row = most[i / 2 % 2];
      of_row = fmaxf(of_row, scores[i / 4][i % 4]);
    }
    const bool may_rise = !(unit_ >= 0) || sums_[0].must_rise(0, most[0] * unit_) ||
                          sums_[0].must_rise(1, most[1] * unit_);
    if (__any_sync(~0u, may_rise) == 0) return;
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const StepPattern cells(pattern, step);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const bool exists = cells.has(i / 4 * 2 + i / 2 % 2, i % 2);
        const float score = scores[2 * step + i / 4][i % 4] * unit_;
        top[i / 2 % 2] = fmaxf(top[i / 2 % 2], exists ? score : -cuda::infinity);
      }
    }
    sums_[0].make_room(top);
  }

  __device__ StepWeights<T> weights_of(const float (*scores)[4], const TilePattern& pattern,
                                       int step) const {
    StepWeights<T> weights;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const int row = place % 2;
      const float* const pair = scores[place / 2] + 2 * row;
      const float base = sums_[0].base[row];
      weights.set(place, power_of_2(fmaf(pair[0], unit_, -base)),
                  power_of_2(fmaf(pair[1], unit_, -base)));
      const std::uint32_t mask = pattern.mask(4 * step + place);
      weights.high[place] &= mask;
      weights.low[place] &= mask;
    }
    return weights;
  }
  /// The sums of weights come out of products with ones.
  __device__ void add_weights(const StepWeights<T>& weights) {
    HeadSums<T, width>& head = sums_[0];
    const std::uint32_t one = packed<T>(1.0f, 1.0f);
    const std::uint32_t ones[2] = {one, one};
    float sums[4] = {head.sum[0], 0, head.sum[1], 0};
    cuda::multiply_16x8<T>(sums, weights.low, ones);
    cuda::multiply_16x8<T>(sums, weights.high, ones);
    head.sum[0] = sums[0];
    head.sum[1] = sums[2];
  }

  float unit_;
  HeadSums<T, width> sums_[1];
};

/// An SM should hold `blocks` of them, as their registers and shared memory allow.
template <class T, int width, int num_stages, int blocks>
__global__ __launch_bounds__(tall_attention_threads,
                             blocks) void attend_dot_groups(const TallAttentionLaunch launch) {
  run_gathered_windows<DotGroups<T, width, num_stages>>(launch);
}

template <class T, int width, int num_stages, int blocks>
constexpr TallAttentionFunction make_dot_groups() {
  return gathered_function<DotGroups<T, width, num_stages>,
                           attend_dot_groups<T, width, num_stages, blocks>>();
}

}  // namespace tessera::ops
