// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gathered_windows.cuh"
#include "ops/attention/cuda/tall/group_dots.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

/// The forward pass of dot products with heads of 64 or 128 16-bit features over windows of 64
/// rows. Groups of four warps multiply at once, own rows with those of sources for the scores of a
/// tile, then weights with the rows of V; the matrix unit reads gathered rows where they lie.
namespace tessera::ops {

/// One tile is on its way while another is computed: more would leave room for fewer blocks.
template <class T, int width>
class DotGroups : public GatheredWindows<DotGroups<T, width>, T, width, 2, 1, NoColumns, 2> {
  using Windows = GatheredWindows<DotGroups, T, width, 2, 1, NoColumns, 2>;

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
    this->wait_for_own();
  }
  __device__ void expect(const WindowRows& rows) const {
    this->expect_rows(launch_.target, launch_.target_stride, rows);
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
    // While one step is multiplied, the weights of the next are found.
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      StepWeights<T> weights[1] = {weights_of(scores.of + 2 * step, pattern, step)};
      add_weights(weights[0]);
      Products::begin_step(weights);
      Products::add(sums, weights[0], rows_of(turn, 1), 0, step);
      Products::commit();
    }
    Products::wait(sums);
  }

  /// Bases rise to the largest score of each row. Mostly no cell asks for that, be there an edge or
  /// not, which is found without looking at edges.
  template <int steps, int groups>
  __device__ void make_room(const float (&scores)[groups][4], const TilePattern& pattern) {
    float most[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 8 * steps; ++i) {
      most[i / 2 % 2] = fmaxf(most[i / 2 % 2], scores[i / 4][i % 4]);
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

/// Blocks that an SM should hold, as their registers and shared memory allow.
template <int width>
inline constexpr int dot_group_blocks = width == 128 ? 2 : 4;

template <class T, int width>
__global__ __launch_bounds__(
    tall_attention_threads,
    dot_group_blocks<width>) void attend_dot_groups(const TallAttentionLaunch launch) {
  run_gathered_windows<DotGroups<T, width>>(launch);
}

template <class T, int width>
constexpr TallAttentionFunction make_dot_groups() {
  return gathered_function<DotGroups<T, width>, attend_dot_groups<T, width>>();
}

}  // namespace tessera::ops
