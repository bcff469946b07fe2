// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/launch.hpp"

/// How kernels over windows of 16 rows are started: every warp is a worker.
namespace tessera::ops {

__device__ inline std::int32_t short_worker() {
  return static_cast<std::int32_t>(blockIdx.x * short_attention_warps + threadIdx.x / 32);
}

/// This warp's pieces by `Pass`, which has `memory` for the threads of the block.
template <class Pass>
__device__ void run_short_windows(const TallAttentionLaunch& launch,
                                  typename Pass::Memory& memory) {
  cuda::let_next_begin();
  const std::int32_t worker = short_worker();
  if (worker >= launch.num_workers) return;
  const std::int32_t begin = launch.worker_offsets[worker];
  const std::int32_t end = launch.worker_offsets[worker + 1];
  cuda::wait_for_previous();
  Pass pass(launch, memory);
  pass.run(begin, end);
}

template <auto kernel>
constexpr TallAttentionFunction short_function() {
  return {[](const TallAttentionLaunch& launch, Stream stream) {
            const dim3 grid(cuda::num_blocks(launch.num_workers, short_attention_warps),
                            static_cast<unsigned>(launch.heads));
            cuda::launch_overlapped(kernel, grid, short_attention_warps * 32, stream, launch);
          },
          [] { return cuda::resident_blocks(kernel, short_attention_warps * 32, 0); }};
}

}  // namespace tessera::ops
