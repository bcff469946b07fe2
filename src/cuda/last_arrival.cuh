// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who comes last of several that each leave something in memory: it sees what all of them left,
/// and the counter is 0 again, ready for the next run.
namespace tessera::cuda {

/// True in all threads of the block that is the last of `count` to come here.
__device__ inline bool is_last_block(unsigned* counter, unsigned count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == count - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// The same for warps.
__device__ inline bool is_last_warp(unsigned* counter, unsigned count) {
  __threadfence();
  __syncwarp();
  unsigned done = 0;
  if (threadIdx.x % 32 == 0) {
    done = atomicAdd(counter, 1u) + 1;
    if (done == count) *counter = 0;
  }
  done = __shfl_sync(~0u, done, 0);
  __threadfence();
  return done == count;
}

}  // namespace tessera::cuda
