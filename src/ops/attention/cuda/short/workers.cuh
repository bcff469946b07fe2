// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// How kernels over windows of 16 rows are started, and how their windows follow one another: every
/// block is one warp.
namespace tessera::ops {

/// Rows of steps and windows come to shared memory. `Pass` has `start(memory, column)` for what
/// belongs to a step's columns, `start_own(piece)` for what belongs to a window's rows;
/// `begin(piece)`, `multiply(memory)` for all that needs the window's own rows, `add(memory, bits)`
/// for the rest of a step, and `finish(piece)`.
template <class Pass>
class RingRun {
  using Ring = StepRing<Pass::slot_bytes, Pass::stages>;

 public:
  /// Behind the ring there is room for the window's own rows.
  static constexpr int shared_bytes = Ring::bytes + Pass::own_bytes;

  __device__ RingRun(const TallAttentionLaunch& launch, char* memory)
      : launch_(launch), memory_(memory), pass_(launch, memory + Ring::bytes) {}

  /// Pieces [begin, end), be they of one window or another.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    Ring ring(launch_, begin, end, memory_);
    std::int32_t busy = next_busy(begin, end);
    start_own(busy, end);
    ring.begin(pass_);
    for (std::int32_t i = begin; i < end; ++i) {
      const tiles::Piece piece = launch_.pieces[i];
      if (i == busy) busy = next_busy(i + 1, end);
      pass_.clear();
#pragma unroll 1
      for (int left = piece.num_steps; left > 0; --left) {
        const bool first = left == piece.num_steps;
        const char* const step = ring.wait(first);
        if (first) pass_.begin(piece);
        pass_.multiply(step);
        if (left == 1) start_own(busy, end);
        pass_.add(step, ring.bits());
        ring.next(pass_);
      }
      pass_.finish(piece);
    }
    // Even what was asked for last must have arrived before the memory is another block's.
    cuda::wait_for_copies<0>();
    pass_.end();
  }

 private:
  /// The first piece from i on that has steps.
  __device__ std::int32_t next_busy(std::int32_t i, std::int32_t end) const {
    while (i < end && launch_.pieces[i].num_steps == 0) ++i;
    return i;
  }
  __device__ void start_own(std::int32_t i, std::int32_t end) {
    if (i >= end) return;
    __syncwarp();
    pass_.start_own(launch_.pieces[i]);
    cuda::commit_copies();
  }

  const TallAttentionLaunch& launch_;
  char* memory_;
  Pass pass_;
};

/// This warp's pieces.
template <class Run>
__device__ void run_short_windows(const TallAttentionLaunch& launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  Run run(launch, shared);
  run.run(begin, end);
}

template <class Run, auto kernel>
constexpr TallAttentionFunction short_function() {
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            static_cast<unsigned>(launch.heads));
            cuda::launch_overlapped(kernel, grid, 32, std::size_t{Run::shared_bytes}, stream,
                                    launch);
          },
          [] { return cuda::resident_blocks(kernel, 32, Run::shared_bytes, Run::shared_bytes); }};
}

}  // namespace tessera::ops
