// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>

#include "cuda/overlap.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/store.cuh"

/// Small products of one plane with one, which take about as long as memory needs to answer: a
/// block is a warp with 16 rows and 32 columns, all that it needs of either side comes at once, and
/// straight into registers.
namespace tessera::ops {
namespace {

constexpr int block_rows = 16;
constexpr int block_columns = 32;
/// Four lanes load 64 bytes of a row, 16 each. In which order a product goes through K is free as
/// long as both sides have the same.
constexpr int part_words = 16;
constexpr int parts = small_planes_depth / 32 / part_words;

using RowParts = std::uint32_t[parts][4];

/// Rows that do not exist are others, whose sums nobody stores; words behind a row's last are the
/// first ones, which `clear_behind` takes from one side.
__device__ void load_row(RowParts& words, const BitRows& from, std::int64_t row) {
  const std::uint32_t* const begin = from.words + (row < from.rows ? row : 0) * from.row_words;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const int word = part * part_words + static_cast<int>(threadIdx.x) % 4 * 4;
    const uint4 loaded =
        *reinterpret_cast<const uint4*>(begin + (word < from.row_words ? word : 0));
    memcpy(words[part], &loaded, sizeof(loaded));
  }
}

__device__ void clear_behind(RowParts& words, const BitRows& from) {
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const bool exists = part * part_words + static_cast<int>(threadIdx.x) % 4 * 4 < from.row_words;
#pragma unroll
    for (std::uint32_t& word : words[part]) word = exists ? word : 0;
  }
}

__global__ __launch_bounds__(32) void count_small_planes(const BitProduct product) {
  cuda::let_next_begin();
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t row = std::int64_t{blockIdx.x} * block_rows + lane / 4;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * block_columns;
  RowParts upper, lower, columns[block_columns / 8] = {};
  const auto load_a = [&] {
    load_row(upper, product.a, row);
    load_row(lower, product.a, row + 8);
  };
  if (product.a_stays) load_a();
  cuda::wait_for_previous();
  if (!product.a_stays) load_a();
  // In a branch, which is always taken: else the compiler asks for some after products of others.
  if (first_column < product.b.rows) {
#pragma unroll
    for (int eight = 0; eight < block_columns / 8; ++eight) {
      load_row(columns[eight], product.b, first_column + eight * 8 + lane / 4);
    }
  }
  clear_behind(upper, product.a);
  clear_behind(lower, product.a);
  std::int32_t sums[block_columns / 8][4] = {};
#pragma unroll
  for (int part = 0; part < parts; ++part) {
#pragma unroll
    for (int word = 0; word < 4; word += 2) {
      const std::uint32_t a[4] = {upper[part][word], lower[part][word], upper[part][word + 1],
                                  lower[part][word + 1]};
#pragma unroll
      for (int eight = 0; eight < block_columns / 8; ++eight) {
        const std::uint32_t b[2] = {columns[eight][part][word], columns[eight][part][word + 1]};
        count_16x8(sums[eight], a, b);
      }
    }
  }
#pragma unroll
  for (int eight = 0; eight < block_columns / 8; ++eight) {
    const std::int64_t column = first_column + eight * 8 + lane % 4 * 2;
    store_pair(product, row, column, sums[eight][0], sums[eight][1]);
    store_pair(product, row + 8, column, sums[eight][2], sums[eight][3]);
  }
}

}  // namespace

const BitFunction small_planes = {
    block_rows,
    block_columns,
    0,
    false,
    [](const BitProduct&) {},
    [](const BitProduct& product, int, Stream stream) {
      cuda::launch_overlapped(count_small_planes, bit_grid(product, block_rows, block_columns, 1),
                              32, stream, product);
    }};

}  // namespace tessera::ops
