// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/launch.hpp"
#include "tessera/tiles/tiled_graph.hpp"

/// How lanes and warps share what columns of a tile bring to packed factors.
namespace tessera::ops {

/// Lane 4 g + q has to do with columns 2q and 2q + 1 of a step, in one word, and 2q + 8 and 2q + 9,
/// in the next: where an even column of the tile and its neighbour lie.
struct LaneColumns {
  int at;  ///< 4 step + q
  int word;

  __device__ explicit LaneColumns(int column)
      : at((column >> 2 & ~3) | (column >> 1 & 3)), word(column >> 3 & 1) {
    static_assert(tiles::step_columns == 16);
  }
};
/// Places of a tile, and one more, so that heads do not begin in the same bank.
inline constexpr int lane_places = tiles::tile_columns / 4 + 1;

/// Whether something is out of range in a tile, by the warps that brought it.
struct alignas(16) WarpFlags {
  int of_warps[tall_attention_threads / 32];

  __device__ void set(bool flag) {
    const int any = __any_sync(~0u, flag);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = any;
  }
  __device__ bool any() const {
    const int4 all = *reinterpret_cast<const int4*>(of_warps);
    return (all.x | all.y | all.z | all.w) != 0;
  }
};

}  // namespace tessera::ops
