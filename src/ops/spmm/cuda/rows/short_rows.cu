// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/short_rows.hpp"

#include <cub/block/block_radix_sort.cuh>

#include "cuda/launch.cuh"
#include "ops/spmm/cuda/rows/schedule.hpp"

namespace tessera::ops {
namespace {

constexpr int block_threads = 512;
constexpr int thread_rows = list_window_rows / block_threads;
static_assert(thread_rows * block_threads == list_window_rows);

__device__ EdgeOffset offset_of(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? offsets.narrow[row] : offsets.wide[row];
}

/// A block takes a window and sorts its rows by how many steps they have, most first. `key_bits`
/// hold the most steps of a short row and one more, which is the key of rows that are not in the
/// list.
__global__ __launch_bounds__(block_threads) void list_window(const ShortRowsLaunch launch,
                                                             int most_steps, int key_bits) {
  using Sort = cub::BlockRadixSort<std::uint32_t, block_threads, thread_rows, std::uint32_t>;
  __shared__ typename Sort::TempStorage memory;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * list_window_rows;
  const auto left_out = static_cast<std::uint32_t>(most_steps) + 1;
  std::uint32_t keys[thread_rows];
  std::uint32_t rows[thread_rows];
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    rows[i] = threadIdx.x * thread_rows + i;
    keys[i] = left_out;
    const std::int64_t row = first_row + rows[i];
    if (row >= launch.num_rows) continue;
    const EdgeOffset length = offset_of(launch.offsets, row + 1) - offset_of(launch.offsets, row);
    if (length > launch.short_row) continue;
    const int steps = (static_cast<int>(length) + launch.step - 1) / launch.step;
    keys[i] = static_cast<std::uint32_t>(most_steps - steps);
  }
  Sort(memory).SortBlockedToStriped(keys, rows, 0, key_bits);

  std::int64_t first = first_row;
  if (!launch.all_short) {
    first = launch.firsts != nullptr ? launch.firsts[blockIdx.x] : launch.few_firsts[blockIdx.x];
  }
  RowStart* const list = launch.list + first;
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    if (keys[i] == left_out) continue;
    const std::int64_t row = first_row + rows[i];
    const EdgeOffset begin = offset_of(launch.offsets, row);
    RowStart start;
    start.slice = {begin, static_cast<VertexId>(row),
                   static_cast<std::int32_t>(offset_of(launch.offsets, row + 1) - begin)};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      start.columns[k] = k < start.slice.count ? launch.indices[begin + k] : 0;
    }
    list[i * block_threads + threadIdx.x] = start;
  }
}

}  // namespace

void list_short_rows(const ShortRowsLaunch& launch, Stream stream) {
  const auto most_steps = static_cast<int>((launch.short_row + launch.step - 1) / launch.step);
  int key_bits = 1;
  while (((most_steps + 1) >> key_bits) != 0) ++key_bits;
  cuda::launch(list_window, dim3(cuda::num_blocks(launch.num_rows, list_window_rows)),
               block_threads, stream, launch, most_steps, key_bits);
}

}  // namespace tessera::ops
