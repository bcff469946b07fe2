// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gatv2_scores.cuh"
#include "ops/attention/cuda/short/results.cuh"
#include "ops/attention/cuda/short/step_feed.cuh"
#include "ops/attention/cuda/short/weighted_tiles.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// GATv2 over windows of 16 rows: a warp takes a window by itself, 16 columns at a time.
namespace tessera::ops {

template <class T, int width>
class ShortGatV2 : public ShortPass {
  using Own = OwnRows<width>;
  using Ring = StepRing<width>;

 public:
  static constexpr int blocks = width == 128 ? 8 : 16;
  static constexpr int shared_bytes = Own::bytes + Ring::bytes;

  __device__ ShortGatV2(const WindowsLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        own_(memory + Ring::bytes, launch.target, launch.target_stride),
        scores_(launch) {}

  /// Pieces [begin, end), be they of one window or another: while a step is computed, the rows of
  /// the next are on their way, and during a window the own rows of the next.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    if (begin == end) return;
    Ring ring(launch_, begin, end, memory_);
    start_own(begin, end);
    Ring::settle();
    ask(ring);
    for (std::int32_t i = begin; i < end; ++i) {
      Ring::settle();
      scores_.begin(own_);
      sums_ = {};
      const int num_steps = launch_.pieces[i].num_steps;
#pragma unroll 1
      for (int left = num_steps; left > 0; --left) {
        Ring::settle();
        const std::uint32_t bits = ring.bits();
        const int turn = ring.turn();
        ask(ring);
        if (left == num_steps) start_own(i + 1, end);
        add(bits, ring.source_tile(turn), ring.value_tile(turn));
      }
      if (num_steps == 0) start_own(i + 1, end);
      finish(launch_.pieces[i]);
    }
  }

 private:
  __device__ void start_own(std::int32_t i, std::int32_t end) const {
    if (i < end) own_.start(launch_.pieces[i]);
  }
  __device__ static void ask(Ring& ring) {
    ring.ask([](const VertexId*, int) {});
  }

  __device__ void add(std::uint32_t bits, const StepTile<width>& sources,
                      const StepTile<width>& values) {
    StepCells cells;
    scores_.find(cells, sources);
    const StepWeights<T> weights = settle(cells, bits);
    add_weighted(sums_, weights, values);
  }

  /// Scores become weights, of which cells without an edge have none; bases make room for the
  /// largest score of each row.
  __device__ StepWeights<T> settle(StepCells& cells, std::uint32_t bits) {
    float top[2];
    cells.settle(bits, 1, top);
    if (__any_sync(~0u, sums_.must_rise(0, top[0]) || sums_.must_rise(1, top[1])) != 0) {
      sums_.make_room(top);
    }
    return weights_of_scores(cells, sums_);
  }

  __device__ void finish(const tiles::Piece piece) const {
    const ShortResults<T, width> results(launch_, piece);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      const float factor =
          results.settle(place, sums_.base[row], sums_.total(row), WarpLane::quarter() == 0);
#pragma unroll
      for (int group = 0; group < width / 8; ++group) {
        results.store(place, group * 8 + WarpLane::quarter() * 2, sums_.features[group][2 * row],
                      sums_.features[group][2 * row + 1], factor);
      }
    }
    results.finish();
  }

  const WindowsLaunch& launch_;
  char* memory_;
  Own own_;
  GatV2Scores<T, width> scores_;
  HeadSums<T, width> sums_;
};

}  // namespace tessera::ops
