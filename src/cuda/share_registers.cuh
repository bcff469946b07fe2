// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Registers of a block given by warp groups that need few to others. All warps of a group call it
/// together, and every group of the block gives or takes; `count` is a multiple of 8 from 24 to
/// 256.
namespace tessera::cuda {

template <int count>
__device__ inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
/// Waits until so many are free.
template <int count>
__device__ inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

}  // namespace tessera::cuda
