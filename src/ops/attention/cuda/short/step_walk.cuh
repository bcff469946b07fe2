// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/launch.hpp"

namespace tessera::ops {

/// One of the 16 columns of a step, number lane % 16.
struct LaneColumn {
  VertexId column = 0;

  __device__ void load(const VertexId* columns) {
    column = __ldg(columns + static_cast<int>(threadIdx.x) % 16);
  }
};

/// Goes over the steps of pieces [next, end), ahead of whoever computes them. The piece after the
/// one it is in is on its way already. `Columns` are what a lane loads of the columns of a step.
template <class Columns>
class StepWalk {
 public:
  struct Step : Columns {
    std::uint32_t bits = 0;  ///< of this lane
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
    step.load(launch_.columns + std::int64_t{step_} * tiles::step_columns);
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
