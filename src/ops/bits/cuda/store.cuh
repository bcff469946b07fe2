// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "ops/bits/cuda/launch.hpp"

/// Where the sums of a block go. The blocks of a cluster share rows and columns, and each has the
/// sums over a part of K.
namespace tessera::ops {

/// Two neighbouring columns, the first of them even. Rows of an even stride begin at multiples of 8
/// bytes.
__device__ inline void store_pair(const BitProduct& product, std::int64_t row, std::int64_t col,
                                  std::int32_t first, std::int32_t second) {
  if (row >= product.a.rows || col >= product.b.rows) return;
  std::int32_t* to = product.sums + row * product.stride + col;
  if (col + 1 == product.b.rows) {
    to[0] = first;
  } else if (product.stride % 2 == 0) {
    *reinterpret_cast<int2*>(to) = make_int2(first, second);
  } else {
    to[0] = first;
    to[1] = second;
  }
}

/// `sums` are those of a warp group: `tiles` times 64 rows of the block's, `width` columns. Where
/// two blocks have a part of K each, either finishes half of the rows, and gets the other's sums of
/// them in its shared memory, which holds nothing else any more.
template <int width, int groups, int tiles>
__device__ void store_sums(const BitProduct& product, std::int64_t first_row,
                           std::int64_t first_col, int group,
                           std::int32_t (&sums)[tiles][width / 2], std::int32_t* memory) {
  constexpr int count = width / 2;
  constexpr int units = groups * tiles;
  constexpr int units_of_block = units > 1 ? units / 2 : 1;
  static_assert(units == 1 || units % 2 == 0);
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const bool shared = cluster.num_blocks() > 1;
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const auto place = [&](int unit, int i) {
    return ((unit % units_of_block * (count / 4) + i / 4) * 128 + thread) * 4;
  };
  if (shared) {
    cluster.sync();
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const int unit = group * tiles + tile;
      if (unit / units_of_block == rank) continue;
      auto* there = cluster.map_shared_rank(memory, static_cast<unsigned>(unit / units_of_block));
#pragma unroll
      for (int i = 0; i < count; i += 4) {
        *reinterpret_cast<int4*>(there + place(unit, i)) =
            make_int4(sums[tile][i], sums[tile][i + 1], sums[tile][i + 2], sums[tile][i + 3]);
      }
    }
    cluster.sync();
  }
  const int lane = thread % 32;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    const int unit = group * tiles + tile;
    if (shared && unit / units_of_block != rank) continue;
    const std::int64_t row = first_row + unit * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      int4 total =
          make_int4(sums[tile][i], sums[tile][i + 1], sums[tile][i + 2], sums[tile][i + 3]);
      if (shared) {
        const int4 other = *reinterpret_cast<const int4*>(memory + place(unit, i));
        total =
            make_int4(total.x + other.x, total.y + other.y, total.z + other.z, total.w + other.w);
      }
      const std::int64_t col = first_col + i * 2 + lane % 4 * 2;
      store_pair(product, row, col, total.x, total.y);
      store_pair(product, row + 8, col, total.z, total.w);
    }
  }
}

}  // namespace tessera::ops
