// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// How kernels over windows of 16 rows are started: every warp is a worker of its own. The largest
/// windows go to the first workers, so that workers are dealt to blocks in turn: a processor whose
/// warps all had long windows would be busy when others are done.
namespace tessera::ops {

/// This warp, among all of a slice, in blocks of at most `warps`.
template <int warps>
__device__ int short_worker() {
  if constexpr (warps == 1) return static_cast<int>(blockIdx.x);
  return static_cast<int>(threadIdx.x / 32 * gridDim.x + blockIdx.x);
}

/// This warp's pieces.
template <class Run, int warps = 1>
__device__ void run_short_windows(const TallAttentionLaunch& launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const std::int32_t begin = launch.worker_offsets[short_worker<warps>()];
  const std::int32_t end = launch.worker_offsets[short_worker<warps>() + 1];
  cuda::wait_for_previous();
  Run run(launch, shared + (warps == 1 ? 0 : threadIdx.x / 32 * Run::shared_bytes));
  run.run(begin, end);
}

template <class Run, auto kernel, int warps = 1>
constexpr TallAttentionFunction short_function() {
  static_assert(Run::shared_bytes % 16 == 0);
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers / launch.block_workers),
                            static_cast<unsigned>(launch.heads));
            const auto count = static_cast<unsigned>(launch.block_workers);
            cuda::launch_overlapped(kernel, grid, 32 * count,
                                    std::size_t{count} * Run::shared_bytes, stream, launch);
          },
          [] {
            constexpr int bytes = warps * Run::shared_bytes;
            return warps * cuda::resident_blocks(kernel, 32 * warps, bytes, bytes);
          },
          warps};
}

}  // namespace tessera::ops
