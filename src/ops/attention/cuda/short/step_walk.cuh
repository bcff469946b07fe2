// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/launch.hpp"

namespace tessera::ops {

/// Goes over the steps of pieces [next, end), ahead of whoever computes them. The piece after the
/// one it is in is on its way already.
class StepWalk {
 public:
  /// What a lane 4 g + q has to do with of a step: columns g and g + 8, whose rows meet those of
  /// the window; 2q, 2q + 1 and those 8 further on, whose rows are weighted; and its bits.
  struct Step {
    VertexId met[2] = {};
    VertexId weighted[4] = {};
    std::uint32_t bits = 0;
  };

  __device__ StepWalk(const TallAttentionLaunch& launch, std::int32_t begin, std::int32_t end)
      : launch_(launch), next_(begin), end_(end) {
    fetch();
  }

  /// Takes the next step; false after the last, which stays.
  __device__ bool advance(Step& step) {
    while (left_ == 0 && has_ahead_) {
      step_ = ahead_.first_step;
      tile_ = ahead_.first_tile;
      left_ = ahead_.num_steps;
      in_tile_ = 0;
      fetch();
    }
    if (left_ == 0) return false;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const VertexId* const columns = launch_.columns + std::int64_t{step_} * tiles::step_columns;
    step.met[0] = __ldg(columns + lane / 4);
    step.met[1] = __ldg(columns + lane / 4 + 8);
    const int2 low = __ldg(reinterpret_cast<const int2*>(columns) + lane % 4);
    const int2 high = __ldg(reinterpret_cast<const int2*>(columns) + lane % 4 + 4);
    step.weighted[0] = low.x;
    step.weighted[1] = low.y;
    step.weighted[2] = high.x;
    step.weighted[3] = high.y;
    step.bits = __ldg(launch_.words + std::int64_t{tile_} * 32 + lane) >> (4 * in_tile_);
    ++step_;
    --left_;
    if (++in_tile_ == tiles::tile_columns / tiles::step_columns) {
      in_tile_ = 0;
      ++tile_;
    }
    return true;
  }

 private:
  __device__ void fetch() {
    has_ahead_ = next_ < end_;
    if (has_ahead_) ahead_ = launch_.pieces[next_];
    ++next_;
  }

  const TallAttentionLaunch& launch_;
  std::int32_t next_;
  std::int32_t end_;
  tiles::Piece ahead_;
  bool has_ahead_ = false;
  std::int32_t step_ = 0;
  std::int32_t tile_ = 0;
  std::int32_t left_ = 0;
  int in_tile_ = 0;
};

}  // namespace tessera::ops
