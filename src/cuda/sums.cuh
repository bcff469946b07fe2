// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "cuda/cluster_sums.cuh"
#include "cuda/elements.cuh"
#include "cuda/last_arrival.cuh"
#include "cuda/launch.cuh"
#include "cuda/workspace.hpp"

/// Sums in double that are the same bits at every run: each block adds a part that depends on the
/// shape alone, and whichever block is done last adds the parts, in an order that is fixed too.
namespace tessera::cuda {

inline constexpr int sum_threads = 256;

/// Blocks that keep a large GPU busy, four on each multiprocessor. A constant: the cut must not
/// depend on the GPU.
inline constexpr std::int64_t wanted_blocks = 528;

/// Adds the values of threads that are a multiple of `lanes` apart, a power of two up to 32; the
/// first `lanes` threads end up with the sums.
template <int count>
__device__ inline void add_across_block(double (&values)[count], int lanes) {
  constexpr int warps = sum_threads / 32;
  __shared__ double shared[count][warps][32];
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int distance = 16; distance >= lanes; distance /= 2) {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] += __shfl_xor_sync(~0u, values[i], distance);
  }
  if (thread % 32 < lanes) {
#pragma unroll
    for (int i = 0; i < count; ++i) shared[i][thread / 32][thread % 32] = values[i];
  }
  __syncthreads();
  if (thread < lanes) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      values[i] = shared[i][0][thread];
#pragma unroll
      for (int warp = 1; warp < warps; ++warp) values[i] += shared[i][warp][thread];
    }
  }
  __syncthreads();
}

/// Rows of which a thread has read its part before it works on the first of them.
template <int width, class Function>
constexpr int rows_in_flight = width == 1 ? 4 : Function::rows_ahead;

/// Columns that a thread has, where it keeps several numbers of each: more of them take the
/// registers of threads that could read meanwhile.
inline constexpr int columns_at_once = 4;

/// What a thread reads of a row ahead, as it lies: in fp32 it would take more registers.
template <int width, bool aligned, class T>
__device__ Pack<T, width> fetch_pack(const Elements<width, aligned>& place, Rows<const T> from) {
  static_assert(aligned || width == 1);
  return *reinterpret_cast<const Pack<T, width>*>(from.data + place.row * from.stride + place.col);
}

/// What a pass before left of a thread's columns.
template <int width>
struct KeptNumbers {
  ColumnNumbers of[width];
};
template <int width>
__device__ KeptNumbers<width> keep_numbers(const ColumnNumbers* of_columns) {
  KeptNumbers<width> kept;
#pragma unroll
  for (int i = 0; i < width; ++i) kept.of[i] = of_columns[i];
  return kept;
}

/// Blocks on a multiprocessor: what a thread keeps of its columns takes registers.
constexpr int resident_blocks(int width) { return width <= 4 ? 3 : 2; }

/// How the rows of a matrix are shared among blocks, and columns among the threads of a block.
struct ColumnSplit {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int lanes = 1;  ///< threads side by side in a row
  std::int64_t rows_per_part = 0;
  std::int64_t parts = 1;

  template <int width, class Function>
  static ColumnSplit of(std::int64_t rows, std::int64_t cols) {
    ColumnSplit split{rows, cols};
    const std::int64_t vectors = (cols + width - 1) / width;
    split.lanes = static_cast<int>(
        std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(vectors, 1, 32))));
    const std::int64_t blocks = split.column_blocks(width);
    const std::int64_t rows_at_once = rows_in_flight<width, Function> * (sum_threads / split.lanes);
    const std::int64_t useful = (rows + rows_at_once - 1) / rows_at_once;
    const std::int64_t room =
        blocks > workspace_counters
            ? 1
            : workspace_partials / std::max<std::int64_t>(1, cols * Function::num_sums);
    const std::int64_t wanted = wanted_blocks / 4 * resident_blocks(width);
    split.parts = std::max<std::int64_t>(
        1, std::min({useful, room, wanted / std::max<std::int64_t>(1, blocks)}));
    split.rows_per_part = (rows + split.parts - 1) / split.parts;
    return split;
  }

  std::int64_t column_blocks(int width) const {
    return (cols + std::int64_t{lanes} * width - 1) / (std::int64_t{lanes} * width);
  }
};

/// A thread for each column, so that what they read to finish is under way together. The first
/// `lanes` threads have the sums of `width` columns each.
template <int width, class Function>
__device__ void finish_columns(const ColumnSplit& split, const Function& function,
                               const double (&totals)[Function::num_sums * width]) {
  constexpr int sums = Function::num_sums;
  __shared__ double of_columns[sums][32 * width];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < split.lanes) {
#pragma unroll
    for (int i = 0; i < sums * width; ++i) {
      of_columns[i / width][thread * width + i % width] = totals[i];
    }
  }
  __syncthreads();
  const int columns = split.lanes * width;
  const std::int64_t col = std::int64_t{blockIdx.x} * columns + thread;
  if (thread >= columns || col >= split.cols) return;
  double of_column[sums];
#pragma unroll
  for (int sum = 0; sum < sums; ++sum) of_column[sum] = of_columns[sum][thread];
  function.finish(col, of_column);
}

/// `Function` has `num_sums` and `Term`, how many sums there are and the type of what is added;
/// `rows_ahead`, of how many rows a thread reads chunks at once; `columns(place)`, what it keeps of
/// its columns; `fetch(place, columns)`, what it reads of a row; `row(place, columns, fetched,
/// terms)`, which computes the terms of these columns and may write as well; and `finish(col,
/// totals)`. Without sums there is nothing to finish. Where more than two chunks are read at once,
/// terms in fp32 are added in fp32 before they are added to the sums in double.
template <int width, bool aligned, class Function>
__global__ __launch_bounds__(sum_threads,
                             resident_blocks(width)) void over_columns(const ColumnSplit split,
                                                                       const Workspace workspace,
                                                                       const Function function) {
  begin_overlapped();
  constexpr int sums = Function::num_sums;
  constexpr int slots = sums > 0 ? sums : 1;
  constexpr int in_flight = rows_in_flight<width, Function>;
  // 16-bit rows are soon read: to make doubles of all their terms would take longer.
  constexpr bool adds_rows_first =
      width > 1 && in_flight > 2 && std::is_same_v<typename Function::Term, float>;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row_lane = thread / split.lanes;
  const std::int64_t rows_at_once = sum_threads / split.lanes;
  Elements<width, aligned> place;
  place.cols = split.cols;
  place.col = (std::int64_t{blockIdx.x} * split.lanes + thread % split.lanes) * width;
  place.count = place.col < split.cols ? width : 0;
  double totals[slots * width] = {};
  if (place.count > 0) {
    place.count = width;  // known to the compiler: what is for parts of chunks goes
    const auto columns = function.columns(place);
    const std::int64_t begin = std::int64_t{blockIdx.y} * split.rows_per_part;
    const std::int64_t end =
        begin + split.rows_per_part < split.rows ? begin + split.rows_per_part : split.rows;
    for (std::int64_t first = begin + row_lane; first < end; first += in_flight * rows_at_once) {
      decltype(function.fetch(place, columns)) fetched[in_flight];
#pragma unroll
      for (int i = 0; i < in_flight; ++i) {
        place.row = first + i * rows_at_once;
        if (place.row < end) fetched[i] = function.fetch(place, columns);
      }
      typename Function::Term of_rows[slots][width] = {};
#pragma unroll
      for (int i = 0; i < in_flight; ++i) {
        place.row = first + i * rows_at_once;
        if (place.row >= end) break;
        typename Function::Term terms[slots][width] = {};
        function.row(place, columns, fetched[i], terms);
#pragma unroll
        for (int j = 0; j < sums * width; ++j) {
          if constexpr (adds_rows_first) {
            of_rows[j / width][j % width] += terms[j / width][j % width];
          } else {
            totals[j] += static_cast<double>(terms[j / width][j % width]);
          }
        }
      }
      if constexpr (adds_rows_first) {
#pragma unroll
        for (int j = 0; j < sums * width; ++j) {
          totals[j] += static_cast<double>(of_rows[j / width][j % width]);
        }
      }
    }
  }
  if constexpr (sums > 0) {
    add_across_block(totals, split.lanes);
    if (split.parts > 1) {
      const std::int64_t part_size = sums * split.cols;
      if (thread < split.lanes && place.count > 0) {
        double* const part = workspace.partials + blockIdx.y * part_size + place.col;
#pragma unroll
        for (int i = 0; i < sums * width; ++i) part[i / width * split.cols + i % width] = totals[i];
      }
      if (!is_last_block(workspace.counters + blockIdx.x, gridDim.y)) return;
#pragma unroll
      for (int i = 0; i < sums * width; ++i) totals[i] = 0;
      if (place.count > 0) {
        const double* const parts = workspace.partials + place.col;
#pragma unroll 4
        for (std::int64_t part = row_lane; part < split.parts; part += rows_at_once) {
#pragma unroll
          for (int i = 0; i < sums * width; ++i) {
            totals[i] += __ldcg(parts + part * part_size + i / width * split.cols + i % width);
          }
        }
      }
      add_across_block(totals, split.lanes);
    }
    finish_columns<width>(split, function, totals);
  }
}

/// Runs such a function over all rows, however many. Rows on boundaries are taken in chunks of
/// `width`.
template <int width, class Function>
void for_long_columns(const Extent& extent, const Function& function, const Workspace& workspace,
                      Stream stream) {
  if (extent.cols == 0) return;
  const auto run = [&](auto chosen_width, auto aligned) {
    constexpr int w = decltype(chosen_width)::value;
    const auto split = ColumnSplit::of<w, Function>(extent.rows, extent.cols);
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

/// The same of a function with sums; in clusters where the columns are not long and rows lie on
/// boundaries (number by number many blocks are as fast).
template <int width, class Function>
void for_columns(const Extent& extent, const Function& function, const Workspace& workspace,
                 Stream stream) {
  if (extent.cols == 0) return;
  if (fits_clusters(extent.rows) && extent.aligned && extent.cols % width == 0) {
    for_columns_in_clusters<width, true>(extent, function, NoPass{}, stream);
  } else {
    for_long_columns<width>(extent, function, workspace, stream);
  }
}

/// Two functions one after the other, the second without sums but with what the first one's sums
/// gave; together in clusters where the columns are not long. `extent` takes all matrices into
/// account.
template <int width, class First, class Second>
void for_columns_twice(const Extent& extent, const First& first, const Second& second,
                       const Workspace& workspace, Stream stream) {
  if (extent.cols == 0) return;
  if (fits_clusters(extent.rows)) {
    if (extent.aligned && extent.cols % width == 0) {
      for_columns_in_clusters<width, true>(extent, first, second, stream);
    } else {
      for_columns_in_clusters<1, false>(extent, first, second, stream);
    }
  } else {
    for_long_columns<width>(extent, first, workspace, stream);
    for_long_columns<width>(extent, second, workspace, stream);
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

/// Blocks for such a sum over `count` things, `per_block` of them at a time.
inline dim3 sum_grid(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, wanted_blocks)));
}

}  // namespace tessera::cuda
