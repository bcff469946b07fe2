// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Kernels that follow each other closely (programmatic dependent launch). A kernel started by
/// `launch_overlapped` lets the next one's blocks come as soon as all of its own are there, and
/// itself waits for the kernel before it. Since that one waited too, all that came earlier is done
/// when `wait_for_previous` returns.
///
///     kernel 1   blocks ------------------- last ones -|
///     kernel 2                blocks come, read the plan . waited ------------- last ones -|
///     kernel 3                                               blocks come, read the plan    .
///     waited
namespace tessera::cuda {

/// Whether the current GPU can start a kernel before the one ahead of it is done, and the kernels
/// were compiled to wait for it. Asked once for each GPU.
bool overlaps_launches();

/// The next kernel's blocks may take the place that is left once all blocks of this one called.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns when all kernels before this one on the stream are done and what they wrote can be seen.
/// Until then a kernel may read only what its plan holds: that was there before the plan was made.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// For a kernel that reads nothing ahead.
__device__ inline void begin_overlapped() {
  let_next_begin();
  wait_for_previous();
}

}  // namespace tessera::cuda
