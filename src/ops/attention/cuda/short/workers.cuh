// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch_alone.cuh"
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

/// `alone`: after the kernel before it, of whose blocks these may differ in size.
template <class Run, auto kernel, bool alone = false>
constexpr TallAttentionFunction short_function() {
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.num_workers),
                            static_cast<unsigned>(launch.heads));
            constexpr std::size_t bytes{Run::shared_bytes};
            if constexpr (alone) {
              cuda::launch_alone(kernel, grid, 32, bytes, stream, launch);
            } else {
              cuda::launch_overlapped(kernel, grid, 32, bytes, stream, launch);
            }
          },
          [] { return cuda::resident_blocks(kernel, 32, Run::shared_bytes, Run::shared_bytes); }};
}

}  // namespace tessera::ops
