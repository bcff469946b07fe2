// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/step_rows.cuh"

/// How kernels over windows of 16 rows are started: every warp works for itself. Those of a block
/// have neighbouring windows at hand, whose rows the cache nearby then holds for all of them.
namespace tessera::ops {

/// This warp's pieces.
template <class Run, int warps = 1>
__device__ void run_short_windows(const TallAttentionLaunch& launch) {
  extern __shared__ __align__(128) char shared[];
  cuda::let_next_begin();
  const int warp = warps == 1 ? 0 : static_cast<int>(threadIdx.x / 32);
  const auto worker = static_cast<std::int32_t>(blockIdx.x) * warps + warp;
  if (warps > 1 && worker >= launch.num_workers) return;
  const std::int32_t begin = launch.worker_offsets[worker];
  const std::int32_t end = launch.worker_offsets[worker + 1];
  cuda::wait_for_previous();
  Run run(launch, shared + warp * Run::shared_bytes);
  run.run(begin, end);
}

template <class Run, auto kernel, int warps = 1>
constexpr TallAttentionFunction short_function() {
  constexpr int bytes = warps * Run::shared_bytes;
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(cuda::num_blocks(launch.num_workers, warps),
                            static_cast<unsigned>(launch.heads));
            cuda::launch_overlapped(kernel, grid, 32 * warps, std::size_t{bytes}, stream, launch);
          },
          [] { return warps * cuda::resident_blocks(kernel, 32 * warps, bytes, bytes); }};
}

}  // namespace tessera::ops
