// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cuda/cluster.cuh"
#include "cuda/elements.cuh"
#include "cuda/workspace.hpp"

/// Sums over the rows of matrices that are not long, in one launch: a cluster has a few columns,
/// its blocks have the rows among them and add what they found in a fixed order. What follows from
/// the sums may be done with the same rows in the same launch.
namespace tessera::cuda {

inline constexpr int cluster_threads = 512;
/// Up to so many rows a cluster is done sooner than many blocks that meet in global memory: no
/// thread reads more rows than it has on their way at once.
inline constexpr std::int64_t cluster_rows = 8192;

/// How rows and columns are shared. A constant number of columns for a cluster, the bytes that
/// memory moves at least, so that more columns keep more of the GPU busy.
struct ClusterSplit {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int lanes = 1;   ///< threads side by side in a row
  int blocks = 1;  ///< of a cluster
  std::int64_t rows_per_block = 0;

  /// Columns of a cluster, for chunks of so many: those of 32 bytes, or fewer.
  static constexpr int most_lanes(int width) { return width == 1 ? 8 : 2; }

  static ClusterSplit of(std::int64_t rows, std::int64_t cols, int width) {
    ClusterSplit split{rows, cols};
    const std::int64_t vectors = (cols + width - 1) / width;
    split.lanes = static_cast<int>(std::bit_ceil(
        static_cast<std::uint64_t>(std::clamp<std::int64_t>(vectors, 1, most_lanes(width)))));
    const std::int64_t at_once = cluster_threads / split.lanes;
    const std::int64_t useful = std::max<std::int64_t>(1, (rows + at_once - 1) / at_once);
    split.blocks = static_cast<int>(std::bit_ceil(
        static_cast<std::uint64_t>(std::min<std::int64_t>(useful, most_cluster_blocks))));
    split.rows_per_block = (rows + split.blocks - 1) / split.blocks;
    return split;
  }

  std::int64_t clusters(int width) const {
    return (cols + std::int64_t{lanes} * width - 1) / (std::int64_t{lanes} * width);
  }
};

/// Stands for a pass that is not there.
struct NoPass {};

/// What the blocks of a cluster tell each other of at most so many columns.
template <int sums, int width, int columns>
struct ClusterSums {
  static constexpr int count = sums * columns;
  static_assert(count <= cluster_threads);
  double of_warps[cluster_threads / 32][count];
  double of_blocks[most_cluster_blocks][count];

  /// `totals` of all threads whose numbers differ by a multiple of `lanes`; afterwards `of_blocks`
  /// is there in every block. Its blocks have arrived once before.
  __device__ void add(double (&totals)[sums * width], int lanes, int block, int blocks) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
    for (int distance = 16; distance >= lanes; distance /= 2) {
#pragma unroll
      for (int i = 0; i < sums * width; ++i) {
        totals[i] += __shfl_xor_sync(~0u, totals[i], distance);
      }
    }
    if (thread % 32 < lanes) {
#pragma unroll
      for (int i = 0; i < sums * width; ++i) {
        of_warps[thread / 32][i / width * columns + thread % 32 * width + i % width] = totals[i];
      }
    }
    __syncthreads();
    wait_for_cluster();
    // Columns beyond those of the lanes hold nothing.
    if (thread < count && thread % columns < lanes * width) {
      double sum = of_warps[0][thread];
#pragma unroll
      for (int warp = 1; warp < cluster_threads / 32; ++warp) sum += of_warps[warp][thread];
#pragma unroll 1
      for (int other = 0; other < blocks; ++other) {
        store_in_cluster(&of_blocks[block][thread], other, sum);
      }
    }
    arrive_in_cluster();
    wait_for_cluster();
  }

  __device__ double total(int sum, int column, int blocks) const {
    double total = of_blocks[0][sum * columns + column];
#pragma unroll 4
    for (int block = 1; block < blocks; ++block) total += of_blocks[block][sum * columns + column];
    return total;
  }
};

/// Calls `work(place, fetched)` for the rows of a thread, of which it reads several ahead.
template <int width, bool aligned, class Function, class Columns, class Work>
__device__ void for_rows_ahead(Elements<width, aligned> place, std::int64_t begin, std::int64_t end,
                               std::int64_t step, const Function& function, const Columns& columns,
                               Work&& work) {
  constexpr int ahead = width == 1 ? 6 : width == 4 ? 4 : 2;
  place.count = width;  // known to the compiler: what is for parts of chunks goes
  for (std::int64_t first = begin; first < end; first += ahead * step) {
    decltype(function.fetch(place, columns)) fetched[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      place.row = first + i * step;
      if (place.row < end) fetched[i] = function.fetch(place, columns);
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      place.row = first + i * step;
      if (place.row < end) work(place, fetched[i]);
    }
  }
}

/// `First` is a function as `over_columns` takes (sums.cuh), with sums. With a `Second` the first
/// has `known(col)`, what it reads of a column apart from the sums, and gives `numbers(known,
/// totals)`, which the second takes: `columns(place, numbers)`. A row is read by the same thread in
/// both, so that what the second writes may be what both read.
template <int width, bool aligned, class First, class Second>
__global__ __launch_bounds__(cluster_threads) void over_columns_in_clusters(
    const ClusterSplit split, const First first, const Second second) {
  constexpr int sums = First::num_sums;
  constexpr int most_columns = ClusterSplit::most_lanes(width) * width;
  constexpr bool has_second = !std::is_same_v<Second, NoPass>;
  __shared__ ClusterSums<sums, width, most_columns> shared;
  __shared__ ColumnNumbers numbers[most_columns];
  arrive_in_cluster();
  begin_overlapped();
  const int thread = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x) % split.blocks;
  const std::int64_t first_col =
      std::int64_t{blockIdx.x} / split.blocks * (std::int64_t{split.lanes} * width);
  const std::int64_t own_col = first_col + thread;
  const bool has_col = thread < split.lanes * width && own_col < split.cols;
  const std::int64_t of_block = block * split.rows_per_block;
  const std::int64_t begin = of_block + thread / split.lanes;
  const std::int64_t end =
      of_block + split.rows_per_block < split.rows ? of_block + split.rows_per_block : split.rows;
  const std::int64_t step = cluster_threads / split.lanes;
  Elements<width, aligned> place;
  place.cols = split.cols;
  place.col = first_col + thread % split.lanes * width;
  place.count = place.col < split.cols ? width : 0;

  const auto finish = [&](const auto&... known) {
    double totals[sums];
#pragma unroll
    for (int sum = 0; sum < sums; ++sum) totals[sum] = shared.total(sum, thread, split.blocks);
    if constexpr (has_second) numbers[thread] = first.numbers(known..., totals);
    if (block == 0) first.finish(own_col, known..., totals);
  };
  const auto add = [&] {
    double totals[sums * width] = {};
    if (place.count > 0) {
      const auto kept = first.columns(place);
      for_rows_ahead(place, begin, end, step, first, kept,
                     [&](const auto& at, const auto& fetched) {
                       typename First::Term terms[sums][width] = {};
                       first.row(at, kept, fetched, terms);
#pragma unroll
                       for (int i = 0; i < sums * width; ++i) {
                         totals[i] += static_cast<double>(terms[i / width][i % width]);
                       }
                     });
    }
    shared.add(totals, split.lanes, block, split.blocks);
  };
  if constexpr (has_second) {
    using Known = decltype(first.known(own_col));
    const Known known = has_col ? first.known(own_col) : Known{};
    add();
    if (has_col) finish(known);
    __syncthreads();
    if (place.count == 0) return;
    const auto kept = second.columns(place, numbers + (place.col - first_col));
    for_rows_ahead(place, begin, end, step, second, kept, [&](const auto& at, const auto& fetched) {
      float none[1][width];
      second.row(at, kept, fetched, none);
    });
  } else {
    add();
    if (has_col) finish();
  }
}

/// Whether a matrix of so many rows is one for clusters, on the current GPU.
inline bool fits_clusters(std::int64_t rows) { return rows <= cluster_rows && has_clusters(); }

/// Runs them over all rows, in chunks of `width`.
template <int width, bool aligned, class First, class Second>
void for_columns_in_clusters(const Extent& extent, const First& first, const Second& second,
                             Stream stream) {
  const ClusterSplit split = ClusterSplit::of(extent.rows, extent.cols, width);
  launch_clusters(over_columns_in_clusters<width, aligned, First, Second>,
                  num_blocks(split.clusters(width) * split.blocks, 1),
                  static_cast<unsigned>(split.blocks), cluster_threads, 0, stream, split, first,
                  second);
}

}  // namespace tessera::cuda
