// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "cuda/cluster.cuh"
#include "ops/bits/cuda/launch.hpp"

/// Where the sums of a block go. The blocks of a cluster share rows and columns, and each has the
/// sums over a part of K.
namespace tessera::ops {

/// Whether two neighbouring columns, the first of them even, begin at a multiple of 8 bytes.
__device__ inline bool stores_pairs(const BitProduct& product) {
  return product.stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(product.sums) % 8 == 0;
}

/// Two neighbouring columns, the first of them even.
__device__ inline void store_pair(const BitProduct& product, std::int64_t row, std::int64_t col,
                                  std::int32_t first, std::int32_t second) {
  if (row >= product.a.rows || col >= product.b.rows) return;
  std::int32_t* to = product.sums + row * product.stride + col;
  if (col + 1 == product.b.rows) {
    to[0] = first;
  } else if (stores_pairs(product)) {
    *reinterpret_cast<int2*>(to) = make_int2(first, second);
  } else {
    to[0] = first;
    to[1] = second;
  }
}

/// The sums of a warp group: 64 rows from `first_row` on, `width` columns.
template <int width>
__device__ void store_tile(const BitProduct& product, std::int64_t first_row,
                           std::int64_t first_col, const std::int32_t (&sums)[width / 2]) {
  constexpr int count = width / 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row = first_row + threadIdx.x % 128 / 32 * 16 + lane / 4;
  const std::int64_t col = first_col + lane % 4 * 2;
  // Most tiles have all of their rows and columns: two addresses serve all of their stores.
  const bool whole = stores_pairs(product) && first_row + 64 <= product.a.rows &&
                     first_col + width <= product.b.rows;
  if (whole) {
    std::int32_t* const upper = product.sums + row * product.stride + col;
    std::int32_t* const lower = upper + 8 * product.stride;
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      *reinterpret_cast<int2*>(upper + i * 2) = make_int2(sums[i], sums[i + 1]);
      *reinterpret_cast<int2*>(lower + i * 2) = make_int2(sums[i + 2], sums[i + 3]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    store_pair(product, row, col + i * 2, sums[i], sums[i + 1]);
    store_pair(product, row + 8, col + i * 2, sums[i + 2], sums[i + 3]);
  }
}

/// `sums` are those of a warp group: 64 rows of the block's, `width` columns. Where two blocks have
/// a part of K each, either finishes half of the rows: it reads the other's sums of them out of the
/// other's shared memory, which holds nothing else any more.
template <int width, int groups>
__device__ void store_sums(const BitProduct& product, std::int64_t first_row,
                           std::int64_t first_col, int group, std::int32_t (&sums)[width / 2],
                           std::int32_t* memory) {
  constexpr int count = width / 2;
  constexpr int groups_of_block = groups > 1 ? groups / 2 : 1;
  static_assert(groups == 1 || groups % 2 == 0);
  const auto cluster = cooperative_groups::this_cluster();
  if (cluster.num_blocks() == 1) {
    return store_tile<width>(product, first_row + group * 64, first_col, sums);
  }
  const auto rank = static_cast<int>(cluster.block_rank());
  const bool own = group / groups_of_block == rank;
  std::int32_t* const place =
      memory + (group % groups_of_block * count * 128 + static_cast<int>(threadIdx.x) % 128 * 4);
  if (!own) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      *reinterpret_cast<int4*>(place + i * 128) =
          make_int4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    }
  }
  cuda::arrive_in_cluster();
  cuda::wait_for_cluster();
  if (own) {
    const std::int32_t* const there =
        cluster.map_shared_rank(place, static_cast<unsigned>(1 - rank));
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const int4 other = *reinterpret_cast<const int4*>(there + i * 128);
      sums[i] += other.x;
      sums[i + 1] += other.y;
      sums[i + 2] += other.z;
      sums[i + 3] += other.w;
    }
  }
  cuda::arrive_in_cluster();
  if (own) store_tile<width>(product, first_row + group * 64, first_col, sums);
  // No block may be gone while the other reads its memory.
  cuda::wait_for_cluster();
}

}  // namespace tessera::ops
