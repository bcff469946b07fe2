// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// How kernels over windows of 16 rows are started: every block is one warp.
namespace tessera::ops {

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
