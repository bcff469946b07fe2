// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cuda/elements.cuh"
#include "cuda/launch.cuh"
#include "cuda/spread_sum.cuh"

/// A number for each of many short rows, from a sum over it, at the speed at which rows come from
/// memory: some lanes have 16 bytes each of four rows at a time. A function has
///   Fetched, fetch(row, col)   what a lane needs of its columns
///   term<Number>(fetched)      its share of the sum
///   Beside, beside(row)        what the result needs besides, loaded together with that
///   fits(sum)                  false: the sum is wanted in double, too
///   finish(row, sum, wide, beside)   stores the result; `wide` is 0 unless it was wanted
namespace tessera::cuda {

inline constexpr int row_sum_threads = 256;
inline constexpr int row_sums_at_once = 4;

template <int lanes, int width, class Function>
__global__ __launch_bounds__(row_sum_threads) void sum_rows(std::int64_t rows, int cols,
                                                            const Function function) {
  constexpr int at_once = row_sums_at_once;
  constexpr int sharers = lanes / at_once;
  constexpr int warp_rows = 32 / lanes * at_once;
  begin_overlapped();
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int col = lane * width;
  const bool active = col < cols;
  const std::int64_t warps = std::int64_t{gridDim.x} * (row_sum_threads / 32);
  const std::int64_t warp = std::int64_t{blockIdx.x} * (row_sum_threads / 32) + threadIdx.x / 32;
  // Rows beyond the last are the last once more: all lanes take part in sums.
  for (std::int64_t of_warp = warp * warp_rows; of_warp < rows; of_warp += warps * warp_rows) {
    const std::int64_t first = of_warp + static_cast<int>(threadIdx.x) % 32 / lanes * at_once;
    typename Function::Fetched fetched[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      fetched[i] = function.fetch(min(first + i, rows - 1), active ? col : 0);
    }
    const int own = lane / sharers;
    const std::int64_t row = min(first + own, rows - 1);
    const typename Function::Beside beside = function.beside(row);
    float terms[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      terms[i] = active ? function.template term<float>(fetched[i]) : 0.0f;
    }
    const float sum = spread_sum<lanes>(terms, lane);
    double wide = 0;
    if (!__all_sync(~0u, function.fits(sum))) {
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        double total = active ? function.template term<double>(fetched[i]) : 0.0;
#pragma unroll
        for (int bit = lanes / 2; bit > 0; bit /= 2) total += __shfl_xor_sync(~0u, total, bit);
        if (own == i) wide = total;
      }
    }
    if (lane % sharers == 0 && first + own < rows) function.finish(row, sum, wide, beside);
  }
}

/// False, and nothing done, where rows are few, not on boundaries of 16 bytes or longer than a warp
/// takes at once.
template <int width, class Function>
bool run_row_sums(const Extent& extent, const Function& function, Stream stream) {
  constexpr std::int64_t few_rows = 32768;
  if (extent.rows <= few_rows || !extent.aligned) return false;
  if (extent.cols == 0 || extent.cols % width != 0 || extent.cols > 32 * width) return false;
  constexpr unsigned most_blocks = 2112;  // any number may do it
  const auto run = [&](auto number) {
    constexpr int lanes = decltype(number)::value;
    constexpr int block_rows = row_sum_threads / lanes * row_sums_at_once;
    launch_overlapped(sum_rows<lanes, width, Function>,
                      std::min(num_blocks(extent.rows, block_rows), most_blocks), row_sum_threads,
                      stream, extent.rows, static_cast<int>(extent.cols), function);
  };
  const std::int64_t chunks = extent.cols / width;
  if (chunks <= 4) {
    run(std::integral_constant<int, 4>{});
  } else if (chunks <= 8) {
    run(std::integral_constant<int, 8>{});
  } else if (chunks <= 16) {
    run(std::integral_constant<int, 16>{});
  } else {
    run(std::integral_constant<int, 32>{});
  }
  return true;
}

}  // namespace tessera::cuda
