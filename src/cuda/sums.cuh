// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cuda/elements.cuh"
#include "cuda/launch.cuh"
#include "cuda/workspace.hpp"

/// Sums in double that are the same bits at every run: each block adds a part that depends on the
/// shape alone, and whichever block is done last adds the parts, in an order that is fixed too.
namespace tessera::cuda {

inline constexpr int sum_threads = 256;

/// Blocks that keep a large GPU busy. A constant: the cut must not depend on the GPU.
inline constexpr std::int64_t wanted_blocks = 528;

/// True in all threads of the block that is the last of `count` to come here.
__device__ inline bool is_last_block(unsigned* counter, unsigned count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == count - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// Adds the values of threads that are a multiple of `lanes` apart; the first `lanes` threads end
/// up with the sums.
template <int count>
__device__ inline void add_across_block(double (&values)[count], int lanes) {
  __shared__ double shared[count][sum_threads];
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < count; ++i) shared[i][thread] = values[i];
  __syncthreads();
  for (int distance = sum_threads / 2; distance >= lanes; distance /= 2) {
    if (thread < distance) {
#pragma unroll
      for (int i = 0; i < count; ++i) shared[i][thread] += shared[i][thread + distance];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < count; ++i) values[i] = shared[i][thread];
  __syncthreads();
}

/// How the rows of a matrix are shared among blocks, and columns among the threads of a block.
struct ColumnSplit {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int lanes = 1;  ///< threads side by side in a row
  std::int64_t rows_per_part = 0;
  std::int64_t parts = 1;

  static ColumnSplit of(std::int64_t rows, std::int64_t cols, int width, int num_sums) {
    ColumnSplit split{rows, cols};
    const std::int64_t vectors = (cols + width - 1) / width;
    split.lanes = static_cast<int>(
        std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(vectors, 1, 32))));
    const std::int64_t blocks = split.column_blocks(width);
    const std::int64_t rows_at_once = sum_threads / split.lanes;
    const std::int64_t useful = (rows + 4 * rows_at_once - 1) / (4 * rows_at_once);
    const std::int64_t room = blocks > workspace_counters
                                  ? 1
                                  : workspace_partials / std::max<std::int64_t>(1, cols * num_sums);
    split.parts = std::max<std::int64_t>(
        1, std::min({useful, room, wanted_blocks / std::max<std::int64_t>(1, blocks)}));
    split.rows_per_part = (rows + split.parts - 1) / split.parts;
    return split;
  }

  std::int64_t column_blocks(int width) const {
    return (cols + std::int64_t{lanes} * width - 1) / (std::int64_t{lanes} * width);
  }
};

/// `Function` has `num_sums` and `Term`, the type of what is added; `row(place, terms)`, which
/// computes the terms of some columns of a row and may write as well; and `finish(col, totals)`.
template <int width, bool aligned, class Function>
__global__ __launch_bounds__(sum_threads) void over_columns(const ColumnSplit split,
                                                            const Workspace workspace,
                                                            const Function function) {
  begin_overlapped();
  constexpr int sums = Function::num_sums;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % split.lanes;
  const std::int64_t row_lane = thread / split.lanes;
  const std::int64_t rows_at_once = sum_threads / split.lanes;
  Elements<width, aligned> place;
  place.cols = split.cols;
  place.col = (std::int64_t{blockIdx.x} * split.lanes + lane) * width;
  const std::int64_t columns_left = split.cols - place.col;
  place.count =
      static_cast<int>(columns_left < width ? (columns_left > 0 ? columns_left : 0) : width);
  double totals[sums * width] = {};
  if (place.count > 0) {
    const std::int64_t begin = std::int64_t{blockIdx.y} * split.rows_per_part;
    const std::int64_t end =
        begin + split.rows_per_part < split.rows ? begin + split.rows_per_part : split.rows;
    for (place.row = begin + row_lane; place.row < end; place.row += rows_at_once) {
      typename Function::Term terms[sums][width] = {};
      function.row(place, terms);
#pragma unroll
      for (int i = 0; i < sums * width; ++i) {
        totals[i] += static_cast<double>(terms[i / width][i % width]);
      }
    }
  }
  add_across_block(totals, split.lanes);
  if (split.parts > 1) {
    if (thread < split.lanes) {
      double* const part =
          workspace.partials + std::int64_t{blockIdx.y} * sums * split.cols + place.col;
#pragma unroll
      for (int i = 0; i < sums * width; ++i) {
        if (i % width < place.count) part[i / width * split.cols + i % width] = totals[i];
      }
    }
    if (!is_last_block(workspace.counters + blockIdx.x, gridDim.y)) return;
#pragma unroll
    for (int i = 0; i < sums * width; ++i) totals[i] = 0;
    for (std::int64_t part = row_lane; part < split.parts; part += rows_at_once) {
#pragma unroll
      for (int i = 0; i < sums * width; ++i) {
        if (i % width >= place.count) continue;
        totals[i] += __ldcg(workspace.partials + (part * sums + i / width) * split.cols +
                            place.col + i % width);
      }
    }
    add_across_block(totals, split.lanes);
  }
  if (thread >= split.lanes) return;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    if (j >= place.count) break;
    double of_column[sums];
#pragma unroll
    for (int sum = 0; sum < sums; ++sum) of_column[sum] = totals[sum * width + j];
    function.finish(place.col + j, of_column);
  }
}

/// Runs such a function over all rows. Rows on boundaries are taken in chunks of `width`.
template <int width, class Function>
void for_columns(const Extent& extent, const Function& function, const Workspace& workspace,
                 Stream stream) {
  if (extent.cols == 0) return;
  const auto run = [&](auto chosen_width, auto aligned) {
    constexpr int w = decltype(chosen_width)::value;
    const ColumnSplit split = ColumnSplit::of(extent.rows, extent.cols, w, Function::num_sums);
    const dim3 grid(num_blocks(split.column_blocks(w), 1), static_cast<unsigned>(split.parts));
    launch_overlapped(over_columns<w, decltype(aligned)::value, Function>, grid, sum_threads,
                      stream, split, workspace, function);
  };
  if (extent.aligned && extent.cols % width == 0) {
    run(std::integral_constant<int, width>{}, std::true_type{});
  } else {
    run(std::integral_constant<int, 1>{}, std::false_type{});
  }
}

/// Adds some values of every thread of the grid, each by itself; `finish(totals)` is called by one
/// thread of one block.
template <int count, class Finish>
__device__ inline void add_across_grid(double (&values)[count], const Workspace& workspace,
                                       Finish&& finish) {
  add_across_block(values, 1);
  if (threadIdx.x == 0) {
#pragma unroll
    for (int i = 0; i < count; ++i) workspace.partials[blockIdx.x * count + i] = values[i];
  }
  if (!is_last_block(workspace.counters, gridDim.x)) return;
#pragma unroll
  for (int i = 0; i < count; ++i) values[i] = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += sum_threads) {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] += __ldcg(workspace.partials + block * count + i);
  }
  add_across_block(values, 1);
  if (threadIdx.x == 0) finish(values);
}

/// The same of one value; `finish(total)`.
template <class Finish>
__device__ inline void add_across_grid(double value, const Workspace& workspace, Finish&& finish) {
  double values[1] = {value};
  add_across_grid(values, workspace, [&](const double(&totals)[1]) { finish(totals[0]); });
}

/// Blocks for such a sum over `count` things, `per_block` of them at a time.
inline dim3 sum_grid(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, wanted_blocks)));
}

}  // namespace tessera::cuda
