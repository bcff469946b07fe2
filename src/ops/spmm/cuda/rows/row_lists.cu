// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/row_lists.hpp"

#include <algorithm>
#include <bit>

#include <cub/block/block_radix_sort.cuh>

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 512;
constexpr int thread_rows = list_window_rows / block_threads;
static_assert(thread_rows * block_threads == list_window_rows);

/// What rows of a window are sorted by: short ones before wide ones, each from group to group of
/// neighbours, in a group from the most steps on; then those that no list has.
struct ListKeys {
  std::uint32_t groups = 1;
  std::uint32_t most_short_steps = 0;
  std::uint32_t most_wide_steps = 0;

  __host__ __device__ std::uint32_t short_row(std::uint32_t group, std::uint32_t steps) const {
    return group * (most_short_steps + 1) + most_short_steps - steps;
  }
  __host__ __device__ std::uint32_t wide_row(std::uint32_t group, std::uint32_t steps) const {
    return first_wide() + group * (most_wide_steps + 1) + most_wide_steps - steps;
  }
  __host__ __device__ std::uint32_t first_wide() const { return groups * (most_short_steps + 1); }
  __host__ __device__ std::uint32_t left_out() const {
    return first_wide() + groups * (most_wide_steps + 1);
  }
};

__device__ EdgeOffset offset_of(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? offsets.narrow[row] : offsets.wide[row];
}

__host__ __device__ std::uint32_t steps_of(EdgeOffset length, int step) {
  return (static_cast<std::uint32_t>(length) + static_cast<std::uint32_t>(step) - 1) /
         static_cast<std::uint32_t>(step);
}

__device__ std::uint32_t key_of(const RowListsLaunch& launch, const ListKeys& keys,
                                std::uint32_t group, EdgeOffset length) {
  if (length <= launch.short_row) {
    return launch.short_rows == nullptr
               ? keys.left_out()
               : keys.short_row(group, steps_of(length, launch.short_step));
  }
  if (length > launch.wide_row) return keys.left_out();
  return keys.wide_row(group, steps_of(length, launch.wide_step));
}

__device__ std::int64_t row_at(const RowListsLaunch& launch, std::int64_t place) {
  return launch.ids != nullptr ? launch.ids[place] : place;
}

__device__ RowSlice slice_of(const RowListsLaunch& launch, std::int64_t row) {
  const EdgeOffset begin = offset_of(launch.offsets, row);
  return {begin, static_cast<VertexId>(row),
          static_cast<std::int32_t>(offset_of(launch.offsets, row + 1) - begin)};
}

__device__ RowStart start_of(const RowListsLaunch& launch, const RowSlice& slice) {
  RowStart start;
  start.slice = slice;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    start.columns[k] = k < slice.count ? launch.indices[slice.begin + k] : 0;
  }
  return start;
}

/// A block takes a window and sorts its rows. `key_bits` hold all keys.
__global__ __launch_bounds__(block_threads) void list_window(const RowListsLaunch launch,
                                                             const ListKeys list_keys,
                                                             int key_bits) {
  using Sort = cub::BlockRadixSort<std::uint32_t, block_threads, thread_rows, std::uint32_t>;
  __shared__ typename Sort::TempStorage memory;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * list_window_rows;
  std::uint32_t keys[thread_rows];
  std::uint32_t rows[thread_rows];
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    rows[i] = threadIdx.x * thread_rows + i;
    keys[i] = list_keys.left_out();
    if (first_row + rows[i] >= launch.num_rows) continue;
    const std::int64_t row = row_at(launch, first_row + rows[i]);
    const EdgeOffset length = offset_of(launch.offsets, row + 1) - offset_of(launch.offsets, row);
    const std::uint32_t group = rows[i] / static_cast<std::uint32_t>(launch.sorted_rows);
    keys[i] = key_of(launch, list_keys, group, length);
  }
  Sort(memory).SortBlockedToStriped(keys, rows, 0, key_bits);

  ListStart begin{static_cast<std::int32_t>(first_row), 0};
  int num_short = 0;  // of the window, which the others come after
  if (!launch.all_short) {
    const bool few = launch.starts == nullptr;
    begin = few ? launch.few_starts[blockIdx.x] : launch.starts[blockIdx.x];
    const ListStart end = few ? launch.few_starts[blockIdx.x + 1] : launch.starts[blockIdx.x + 1];
    num_short = end.short_row - begin.short_row;
  }
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    if (keys[i] == list_keys.left_out()) continue;
    const int place = i * block_threads + static_cast<int>(threadIdx.x);
    const RowSlice slice = slice_of(launch, row_at(launch, first_row + rows[i]));
    if (keys[i] < list_keys.first_wide()) {
      launch.short_rows[std::int64_t{begin.short_row} + place] = start_of(launch, slice);
    } else {
      launch.wide_rows[std::int64_t{begin.wide_row} + place - num_short] = slice;
    }
  }
}

}  // namespace

std::span<const ListStart> RowListsLaunch::set_starts(const RowsSchedule& schedule) {
  all_short = schedule.starts.empty();
  if (schedule.starts.size() > std::size(few_starts)) return schedule.starts;
  std::copy(schedule.starts.begin(), schedule.starts.end(), few_starts);
  return {};
}

void list_rows(const RowListsLaunch& launch, Stream stream) {
  ListKeys keys;
  keys.groups = static_cast<std::uint32_t>(list_window_rows / launch.sorted_rows);
  keys.most_short_steps = steps_of(launch.short_row, launch.short_step);
  if (!launch.all_short) keys.most_wide_steps = steps_of(launch.wide_row, launch.wide_step);
  cuda::launch(list_window, dim3(cuda::num_blocks(launch.num_rows, list_window_rows)),
               block_threads, stream, launch, keys,
               static_cast<int>(std::bit_width(keys.left_out())));
}

}  // namespace tessera::ops
