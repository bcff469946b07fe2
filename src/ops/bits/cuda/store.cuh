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

/// `sums` are those of a warp group: 64 rows from `row` on of the block's `rows`, `width` columns.
/// `memory` has room for rows * width numbers, and nothing else is in it.
template <int width, int count>
__device__ void store_sums(const BitProduct& product, std::int64_t first_row,
                           std::int64_t first_col, int rows, int group_row,
                           const std::int32_t (&sums)[count], std::int32_t* memory) {
  static_assert(count == width / 2);
  const int lane = threadIdx.x % 32;
  const int row = group_row + threadIdx.x % 128 / 32 * 16 + lane / 4;
  const int col = lane % 4 * 2;
  namespace groups = cooperative_groups;
  const auto cluster = groups::this_cluster();
  if (cluster.num_blocks() == 1) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      store_pair(product, first_row + row, first_col + i * 2 + col, sums[i], sums[i + 1]);
      store_pair(product, first_row + row + 8, first_col + i * 2 + col, sums[i + 2], sums[i + 3]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    auto* upper = reinterpret_cast<int2*>(memory + row * width + i * 2 + col);
    auto* lower = reinterpret_cast<int2*>(memory + (row + 8) * width + i * 2 + col);
    *upper = make_int2(sums[i], sums[i + 1]);
    *lower = make_int2(sums[i + 2], sums[i + 3]);
  }
  cluster.sync();
  const int parts = static_cast<int>(cluster.num_blocks());
  const int share = rows * width / parts;
  const int begin = static_cast<int>(cluster.block_rank()) * share;
  for (int at = begin + static_cast<int>(threadIdx.x) * 4; at < begin + share;
       at += static_cast<int>(blockDim.x) * 4) {
    int4 total = make_int4(0, 0, 0, 0);
    for (int part = 0; part < parts; ++part) {
      const int4 of_part = *reinterpret_cast<const int4*>(
          cluster.map_shared_rank(memory + at, static_cast<unsigned>(part)));
      total.x += of_part.x;
      total.y += of_part.y;
      total.z += of_part.z;
      total.w += of_part.w;
    }
    const std::int64_t to_row = first_row + at / width;
    store_pair(product, to_row, first_col + at % width, total.x, total.y);
    store_pair(product, to_row, first_col + at % width + 2, total.z, total.w);
  }
  cluster.sync();
}

}  // namespace tessera::ops
