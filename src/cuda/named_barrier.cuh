// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Barriers for some of a block's warps, by numbers from 1 to 15; 0 is that of `__syncthreads`.
/// Those who only tell that something is done go on at once; what they wrote before can be read by
/// those who wait.
namespace tessera::cuda {

/// `threads`: how many come to it in all, those who wait and those who do not.
__device__ inline void wait_at_barrier(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ inline void arrive_at_barrier(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

}  // namespace tessera::cuda
