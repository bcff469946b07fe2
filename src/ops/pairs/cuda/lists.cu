// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "core/cuda_handles.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"
#include "ops/pairs/kernels.hpp"

namespace tessera::ops::on_gpu {
namespace {

/// Bits that tell rows apart.
int row_bits(std::int64_t rows) {
  return std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))), 1);
}

/// Sorts ends by their rows; those of one row stay in order. Without memory it says how much it
/// needs.
void sort_ends(PairEnds::State& lists, void* memory, std::size_t& bytes,
               cub::DoubleBuffer<std::uint32_t>& rows, cub::DoubleBuffer<std::uint32_t>& numbers,
               Stream stream) {
  cuda_check(cub::DeviceRadixSort::SortPairs(memory, bytes, rows, numbers, 2 * lists.num_pairs, 0,
                                             row_bits(lists.num_rows), cuda::raw(stream)),
             "sorting the ends of pairs");
}

/// End e is the source of pair e, or, behind all of these, the target of pair e - pairs.
__global__ void number_ends(const std::int32_t* ids, std::int64_t stride, std::int64_t pairs,
                            std::uint32_t* rows, std::uint32_t* numbers) {
  const std::int64_t end = cuda::thread_number();
  if (end >= 2 * pairs) return;
  rows[end] = static_cast<std::uint32_t>(end < pairs ? ids[end] : ids[stride + end - pairs]);
  numbers[end] = static_cast<std::uint32_t>(end);
}

/// A thread for each end and for each row.
__global__ void write_lists(const std::int32_t* ids, std::int64_t stride, std::int64_t pairs,
                            const std::uint32_t* sorted_rows, const std::uint32_t* sorted_numbers,
                            std::int64_t num_rows, PairEnd* ends, std::int32_t* offsets) {
  const std::int64_t k = cuda::thread_number();
  if (k <= num_rows) {
    offsets[k] = static_cast<std::int32_t>(
        cuda::lower_bound(sorted_rows, 0, 2 * pairs, static_cast<std::uint32_t>(k)));
  }
  if (k >= 2 * pairs) return;
  const std::int64_t number = sorted_numbers[k];
  const bool is_target = number >= pairs;
  const std::int64_t pair = is_target ? number - pairs : number;
  ends[k] =
      PairEnd{static_cast<std::int32_t>(sorted_rows[k]), is_target ? ids[pair] : ids[stride + pair],
              static_cast<std::int32_t>(pair), is_target ? 1 : 0};
}

}  // namespace

void prepare_lists(PairEnds::State& lists) {
  const cuda_backend::CurrentDevice current(lists.place.device.index);
  const std::int64_t count = 2 * lists.num_pairs;
  lists.rows = Buffer<std::uint32_t>(2 * count, lists.place);
  lists.numbers = Buffer<std::uint32_t>(2 * count, lists.place);
  std::size_t bytes = 0;
  cub::DoubleBuffer<std::uint32_t> rows(lists.rows.data(), lists.rows.data() + count);
  cub::DoubleBuffer<std::uint32_t> numbers(lists.numbers.data(), lists.numbers.data() + count);
  sort_ends(lists, nullptr, bytes, rows, numbers, lists.place.stream);
  lists.sorting = Buffer<std::byte>(static_cast<std::int64_t>(bytes) + 1, lists.place);
}

void list_ends(ConstOperand pairs, PairEnds::State& lists, Stream stream) {
  const cuda_backend::CurrentDevice current(lists.place.device.index);
  const std::int64_t count = 2 * lists.num_pairs;
  const auto* const ids = static_cast<const std::int32_t*>(pairs.data);
  cub::DoubleBuffer<std::uint32_t> rows(lists.rows.data(), lists.rows.data() + count);
  cub::DoubleBuffer<std::uint32_t> numbers(lists.numbers.data(), lists.numbers.data() + count);
  cuda::launch_each(number_ends, count, stream, ids, pairs.stride, lists.num_pairs, rows.Current(),
                    numbers.Current());
  if (count > 1) {
    auto bytes = static_cast<std::size_t>(lists.sorting.size());
    sort_ends(lists, lists.sorting.data(), bytes, rows, numbers, stream);
  }
  cuda::launch_each(write_lists, std::max(count, lists.num_rows + 1), stream, ids, pairs.stride,
                    lists.num_pairs, rows.Current(), numbers.Current(), lists.num_rows,
                    lists.ends.data(), lists.offsets.data());
}

}  // namespace tessera::ops::on_gpu
