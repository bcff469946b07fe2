// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/row_lists.hpp"

#include <algorithm>
#include <bit>

#include <cub/block/block_radix_sort.cuh>

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "tiles/sample.hpp"

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
  const EdgeOffset begin = cuda::offset_at(launch.offsets, row);
  return {begin, static_cast<VertexId>(row),
          static_cast<std::int32_t>(cuda::offset_at(launch.offsets, row + 1) - begin)};
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
    const EdgeOffset length =
        cuda::offset_at(launch.offsets, row + 1) - cuda::offset_at(launch.offsets, row);
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

VertexId sorted_neighbours(const Graph& graph, tiles::Side side, Precision precision) {
  if (bytes_per_element(precision) < 4) return list_window_rows;
  const double sources = tiles::sample_windows(graph, 64, side).columns;
  return static_cast<double>(graph.num_edges()) >= 2 * sources ? near_list_rows : list_window_rows;
}

ScheduledRows::ScheduledRows(const cuda::DeviceRows& matrix, const RowLengths& rows,
                             const RowsPolicy& policy, const RowsCut& cut, const Place& place,
                             VertexId sorted_rows)
    : cut_(cut), short_row_(cut.short_row(policy)) {
  const RowsSchedule schedule = make_rows_schedule(rows, policy, cut);
  const auto ids = cuda::to_device(rows.ids, place);
  num_short_ = policy.listed ? schedule.num_short : std::int64_t{matrix.num_rows};
  num_slots_ = schedule.num_slots;
  pieces_ = cuda::to_device(schedule.pieces, place);
  split_rows_ = cuda::to_device(schedule.split_rows, place);
  short_rows_ = Buffer<RowStart>(schedule.num_short, place);
  wide_rows_ = Buffer<RowSlice>(schedule.num_wide, place);
  if (short_rows_.empty() && wide_rows_.empty()) return;
  RowListsLaunch launch;
  launch.num_rows = rows.ids.empty() ? matrix.num_rows : static_cast<VertexId>(rows.ids.size());
  launch.ids = ids.data();
  launch.offsets = matrix.offsets();
  launch.indices = matrix.indices.data();
  launch.short_row = short_row_;
  launch.wide_row = cut.longest_wide_row(policy);
  launch.short_step = policy.step();
  launch.wide_step = whole_warp(policy).step();
  launch.sorted_rows = sorted_rows;
  launch.short_rows = short_rows_.data();
  launch.wide_rows = wide_rows_.data();
  const auto starts = cuda::to_device(launch.set_starts(schedule), place);
  launch.starts = starts.data();
  list_rows(launch, place.stream);
}

RowsLaunch::Work ScheduledRows::work() const {
  RowsLaunch::Work work;
  const auto block_warps = static_cast<unsigned>(cut_.block_threads / 32);
  work.block_threads = static_cast<unsigned>(cut_.block_threads);
  work.pieces = pieces_.data();
  work.num_pieces = static_cast<std::uint32_t>(pieces_.size());
  work.wide_rows = wide_rows_.data();
  work.num_wide = static_cast<std::uint32_t>(wide_rows_.size());
  work.num_wide_blocks = (work.num_wide + block_warps - 1) / block_warps;
  work.short_rows = short_rows_.data();
  work.num_short = static_cast<std::uint32_t>(num_short_);
  work.short_row = short_row_;
  work.split_rows = split_rows_.data();
  return work;
}

}  // namespace tessera::ops
