// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/pairs/launch.hpp"
#include "ops/attention/cuda/row_walk.cuh"

namespace tessera::ops {

/// A pass over all rows, two at a time. It has
///   blocks      that an SM should hold, as registers allow
///   run(item)   two rows or a piece of one
///   end()       after the last of a warp
template <class Pass>
__global__ __launch_bounds__(rows_attention_threads,
                             (Pass::blocks)) void go_over_pairs(const RowsAttentionLaunch launch) {
  cuda::begin_overlapped();
  Pass pass(launch);
#pragma unroll 1
  for (unsigned item = warp_of_grid(); item < num_items(launch); item += num_warps()) {
    pass.run(item);
  }
  pass.end();
}

/// `Sharing`: the pass where values are the sources, so that one gathered row is both.
template <class Sharing, class Apart = Sharing>
void launch_pairs(const RowsAttentionLaunch& launch, Stream stream) {
  cuda::launch_overlapped(shares_rows(launch) ? go_over_pairs<Sharing> : go_over_pairs<Apart>,
                          dim3(launch.num_blocks, launch.shape.num_slices), rows_attention_threads,
                          stream, launch);
}

}  // namespace tessera::ops
