// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/overlap.cuh"

/// Two kernels of one run that write different rows, so that the second need not wait for the
/// first, only for what both read. The first, which leads, lets the second come when everything
/// before it is done. The second, which follows, is not over before the first is: one of its blocks
/// waits for it at the end, so that whoever waits for the second has waited for both.
///
///     first     waited, lets next begin ------------------- last ones -|
///     second                 blocks come as places are left --------------- last ones -|
///
/// Every warp calls the functions of its side; `leads` and `follows` are false for a kernel that is
/// a run of its own. Where launches do not overlap, one simply comes after the other.
namespace tessera::cuda {

/// At the beginning of a kernel that may lead.
__device__ inline void begin_leader(bool leads) {
  if (!leads) let_next_begin();
}

/// Before a kernel that may follow reads what other kernels write.
__device__ inline void wait_as_follower(bool follows) {
  if (!follows) wait_for_previous();
}
/// At its end.
__device__ inline void end_follower(bool follows) {
  const bool is_last = blockIdx.x + 1 == gridDim.x && blockIdx.y + 1 == gridDim.y;
  if (follows && is_last) wait_for_previous();
}

}  // namespace tessera::cuda
