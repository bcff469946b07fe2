// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// How kernels over windows of 16 rows are started, and how their windows follow one another: every
/// block is one warp.
namespace tessera::ops {

/// `Pass` has `start(memory, column)` for what belongs to a step's columns, `start_own(piece)` for
/// what belongs to a window's rows; `begin(piece)`, `multiply(memory)` for all that needs the
/// window's own rows, `add(memory, bits)` for the rest of a step, and `finish(piece)`.
template <class Pass>
class WindowRun {
 public:
  __device__ WindowRun(const TallAttentionLaunch& launch, Pass& pass, std::int32_t begin,
                       std::int32_t end, char* memory)
      : launch_(launch), pass_(pass), begin_(begin), end_(end), ring_(launch, begin, end, memory) {}

  /// Pieces [begin, end), be they of one window or another.
  __device__ void run() {
    std::int32_t busy = next_busy(begin_);
    start_own(busy);
    ring_.begin(pass_);
    for (std::int32_t i = begin_; i < end_; ++i) {
      const tiles::Piece piece = launch_.pieces[i];
      if (i == busy) busy = next_busy(i + 1);
      pass_.clear();
#pragma unroll 1
      for (int left = piece.num_steps; left > 0; --left) {
        const bool first = left == piece.num_steps;
        const char* const step = ring_.wait(first);
        if (first) pass_.begin(piece);
        pass_.multiply(step);
        if (left == 1) start_own(busy);
        pass_.add(step, ring_.bits());
        ring_.next(pass_);
      }
      pass_.finish(piece);
    }
    // Even what was asked for last must have arrived before the memory is another block's.
    cuda::wait_for_copies<0>();
  }

 private:
  /// The first piece from i on that has steps.
  __device__ std::int32_t next_busy(std::int32_t i) const {
    while (i < end_ && launch_.pieces[i].num_steps == 0) ++i;
    return i;
  }
  __device__ void start_own(std::int32_t i) {
    if (i >= end_) return;
    __syncwarp();
    pass_.start_own(launch_.pieces[i]);
    cuda::commit_copies();
  }

  const TallAttentionLaunch& launch_;
  Pass& pass_;
  std::int32_t begin_;
  std::int32_t end_;
  StepRing<Pass::slot_bytes, Pass::stages> ring_;
};

/// Behind the ring there is room for the window's own rows.
template <class Pass>
inline constexpr int short_shared_bytes =
    StepRing<Pass::slot_bytes, Pass::stages>::bytes + Pass::own_bytes;

/// This warp's pieces.
template <class Pass>
__device__ void run_short_windows(const TallAttentionLaunch& launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[blockIdx.x];
  const std::int32_t end = launch.worker_offsets[blockIdx.x + 1];
  cuda::wait_for_previous();
  Pass pass(launch, shared + StepRing<Pass::slot_bytes, Pass::stages>::bytes);
  WindowRun<Pass>(launch, pass, begin, end, shared).run();
  pass.end();
}

template <class Pass, auto kernel>
constexpr TallAttentionFunction short_function() {
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            static_cast<unsigned>(launch.heads));
            cuda::launch_overlapped(kernel, grid, 32, std::size_t{short_shared_bytes<Pass>}, stream,
                                    launch);
          },
          [] {
            return cuda::resident_blocks(kernel, 32, short_shared_bytes<Pass>,
                                         short_shared_bytes<Pass>);
          }};
}

}  // namespace tessera::ops
