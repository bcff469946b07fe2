// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "ops/sddmm/cuda/short/launch.hpp"

namespace tessera::ops {

/// Row lane / 4 of a window, or that 8 further on: the last row of the graph instead of one beyond
/// it, whose products nobody wants.
__device__ inline std::uint64_t window_row(const ShortDotsLaunch& launch, VertexId first_row,
                                           int upper) {
  const VertexId row = first_row + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * upper;
  return static_cast<std::uint64_t>(row < launch.num_rows ? row : launch.num_rows - 1);
}

/// A load that stays where it is written: the compiler would put it next to its first use.
template <class Raw>
__device__ Raw load_now(const void* from) {
  Raw raw;
  if constexpr (sizeof(Raw) == 16) {
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(raw.x), "=r"(raw.y), "=r"(raw.z), "=r"(raw.w)
                 : "l"(from));
  } else if constexpr (sizeof(Raw) == 8) {
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(raw.x), "=r"(raw.y) : "l"(from));
  } else {
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(raw) : "l"(from));
  }
  return raw;
}

/// Which columns of a step rows lane / 4 and 8 further on have.
__device__ inline std::uint32_t step_mask(const ShortDotsLaunch& launch, std::int32_t step) {
  return load_now<std::uint32_t>(launch.masks + std::int64_t{step} * 8 + threadIdx.x % 32 / 4);
}

/// 16 columns of a window. A lane has two of them.
struct DotStep {
  std::int32_t step = 0;
  std::int32_t run = 0;
  VertexId first_row = 0;
  bool exists = false;
  bool begins_run = false;
  uint2 columns = {};
};

/// The steps of a warp. The warps of a block take its runs in turn, each as soon as it is done.
class DotWalk {
 public:
  /// `taken` counts the runs of the block that its `warps` warps have taken, in shared memory.
  __device__ DotWalk(const ShortDotsLaunch& launch, std::int32_t* taken, int warps)
      : launch_(launch),
        taken_(cuda::shared_address(taken)),
        end_(launch.block_offsets[blockIdx.x + 1]) {
    const std::int32_t first = launch.block_offsets[blockIdx.x];
    take(first + static_cast<std::int32_t>(threadIdx.x) / 32);
    ahead_ = load_now<uint2>(launch_.runs + run_ahead_);
    if (threadIdx.x == 0) *taken = first + warps;
    __syncthreads();
  }

  /// Asks for the columns of the step after the last. After the last of all come others that do not
  /// exist, with columns that do.
  __device__ DotStep next() {
    DotStep step;
    step.begins_run = steps_ == 0;
    if (step.begins_run) {
      step_ = ahead_.x;
      steps_ = static_cast<int>(ahead_.y & tiles::DotRun::step_mask);
      first_row_ =
          static_cast<VertexId>(ahead_.y >> tiles::DotRun::step_bits) * tiles::dot_step_rows;
      run_ = run_ahead_;
      take_another();
    }
    // Asked for again at every step: a load that only some steps need would be waited for at once.
    ahead_ = load_now<uint2>(launch_.runs + run_ahead_);
    step.exists = steps_ > 0;
    step.begins_run = step.begins_run && step.exists;
    step.step = static_cast<std::int32_t>(step_);
    step.run = run_;
    step.first_row = first_row_;
    const std::uint64_t pair =
        std::uint64_t{step_} * (tiles::step_columns / 2) + threadIdx.x % 32 / 4;
    step.columns = load_now<uint2>(reinterpret_cast<const uint2*>(launch_.columns) + pair);
    if (step.exists) {
      ++step_;
      --steps_;
    }
    return step;
  }

 private:
  __device__ void take_another() {
    std::int32_t run = 0;
    if (threadIdx.x % 32 == 0) {
      asm volatile("atom.shared.add.s32 %0, [%1], 1;" : "=r"(run) : "r"(taken_) : "memory");
    }
    take(__shfl_sync(~0u, run, 0));
  }
  /// The one without steps where the block has no such run.
  __device__ void take(std::int32_t run) { run_ahead_ = run < end_ ? run : launch_.num_runs; }

  const ShortDotsLaunch& launch_;
  std::uint32_t taken_;
  std::int32_t end_;
  std::int32_t run_ahead_;
  uint2 ahead_;
  std::int32_t run_ = 0;
  int steps_ = 0;  ///< left of the run
  std::uint32_t step_ = 0;
  VertexId first_row_ = 0;
};

}  // namespace tessera::ops
