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
///
/// Who waits for one load waits for all that were asked for since. So `find` looks at what was
/// loaded before, and `load` asks for more and looks at nothing: where rows are asked for between
/// them, nobody waits for these too early.
template <class Columns>
class StepWalk {
 public:
  struct Step : Columns {
    /// Of this lane.
    __device__ std::uint32_t bits() const { return word >> shift; }

    std::uint32_t word = 0;
    int shift = 0;
  };

  __device__ StepWalk(const TallAttentionLaunch& launch, std::int32_t begin, std::int32_t end)
      : launch_(launch), next_(begin), end_(end) {
    fetch();
  }

  /// Whether there is another step. Behind a piece without steps no other piece has some.
  __device__ bool find() {
    begins_ = left_ == 0 && next_ <= end_;
    if (begins_) {
      step_ = first_.x;
      tile_ = first_.y;
      left_ = num_steps_;
      in_tile_ = 0;
    }
    return left_ > 0;
  }
  /// Asks for the step that was found.
  __device__ void load(Step& step) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    step.load(launch_.columns + std::int64_t{step_} * tiles::step_columns);
    step.word = __ldg(launch_.words + std::int64_t{tile_} * 32 + lane);
    step.shift = 4 * in_tile_;
    ++step_;
    --left_;
    if (++in_tile_ == tiles::tile_columns / tiles::step_columns) {
      in_tile_ = 0;
      ++tile_;
    }
    if (begins_) fetch();
  }
  /// Both; false after the last step, which stays.
  __device__ bool advance(Step& step) {
    const bool found = find();
    if (found) load(step);
    return found;
  }

 private:
  __device__ void fetch() {
    if (next_ < end_) {
      const tiles::Piece* const piece = launch_.pieces + next_;
      first_ = __ldg(reinterpret_cast<const int2*>(piece));
      num_steps_ = __ldg(&piece->num_steps);
    }
    ++next_;
  }

  const TallAttentionLaunch& launch_;
  std::int32_t next_;  ///< the piece behind the one that is on its way
  std::int32_t end_;
  int2 first_{};  ///< its first step and tile
  int num_steps_ = 0;
  bool begins_ = false;
  std::int32_t step_ = 0;
  std::int32_t tile_ = 0;
  std::int32_t left_ = 0;
  int in_tile_ = 0;
};

}  // namespace tessera::ops
