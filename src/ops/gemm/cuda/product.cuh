// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/mma.cuh"
#include "cuda/overlap.cuh"
#include "ops/gemm/cuda/split_sums.cuh"
#include "ops/gemm/cuda/staged_tile.cuh"

/// Products of fp32 matrices on tensor cores, as exact as fp32 itself: both factors are cut into
/// three bf16 planes, and six of the nine products of planes are added (the other three are below
/// the last bit of fp32). Matrices of bf16 are planes already.
namespace tessera::ops {

inline constexpr int product_rows = 128;

/// How the warps of a block share a tile of `product_rows` x `cols`.
template <int cols>
struct WarpTile {
  static constexpr int across = cols >= 32 ? 2 : 1;
  static constexpr int rows_per_warp = product_rows / (product_threads / 32 / across);
  static constexpr int cols_per_warp = cols / across;
  static constexpr int row_tiles = rows_per_warp / 16;
  static constexpr int col_tiles = cols_per_warp / 8;
  static constexpr int num_sums = row_tiles * col_tiles * 4;

  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / 32 / across * rows_per_warp;
  }
  __device__ static int first_col() {
    return static_cast<int>(threadIdx.x) / 32 % across * cols_per_warp;
  }
};

/// The sums of a thread: rows first, then columns, then the four of a 16 x 8 product.
template <int cols>
struct ProductSums {
  using Tile = WarpTile<cols>;
  float values[Tile::row_tiles][Tile::col_tiles][4] = {};

  /// Calls `visit(row, col, first, second)` for each two neighbours in a row of the block's tile.
  template <class Visit>
  __device__ void each_pair(Visit&& visit) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < Tile::row_tiles; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::col_tiles; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          visit(Tile::first_row() + i * 16 + half * 8 + lane / 4,
                Tile::first_col() + j * 8 + lane % 4 * 2, values[i][j][half * 2],
                values[i][j][half * 2 + 1]);
        }
      }
    }
  }
};

/// Adds the product of a chunk. Sums in tensor cores are cut off, not rounded, so a chunk is summed
/// from 0, its smallest parts first, and added to the others by an ordinary addition.
template <int planes, int cols, class Left, class Right>
__device__ void add_chunk(const Left& left, const Right& right, int inner, int rows,
                          ProductSums<cols>& sums) {
  using Tile = WarpTile<cols>;
#pragma unroll
  for (int i = 0; i < Tile::row_tiles; ++i) {
    const int row = Tile::first_row() + i * 16;
    if (row >= rows) return;
    float chunk[Tile::col_tiles][4] = {};
#pragma unroll
    for (int step = 0; step < inner_chunk; step += 16) {
      if (step >= inner) break;
      std::uint32_t of_left[planes][4];
      std::uint32_t of_right[planes][Tile::col_tiles / 2][4];
#pragma unroll
      for (int plane = 0; plane < planes; ++plane) {
        left.template fragment<true>(plane, row, step, of_left[plane]);
#pragma unroll
        for (int j = 0; j < Tile::col_tiles / 2; ++j) {
          right.template fragment<false>(plane, Tile::first_col() + j * 16, step,
                                         of_right[plane][j]);
        }
      }
      each_plane_pair<planes>([&](int p, int q) {
#pragma unroll
        for (int j = 0; j < Tile::col_tiles; ++j) {
          const std::uint32_t(&both)[4] = of_right[q][j / 2];
          const std::uint32_t word[2] = {both[j % 2 * 2], both[j % 2 * 2 + 1]};
          cuda::multiply_16x8<__nv_bfloat16>(chunk[j], of_left[p], word);
        }
      });
    }
#pragma unroll
    for (int j = 0; j < Tile::col_tiles; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k) sums.values[i][j][k] += chunk[j][k];
    }
  }
}

/// Takes what does not count out of a tile, rounds the rest to what will be stored, and adds up its
/// columns; together with the tiles above and below if it is the last of them.
template <int cols, class T>
__device__ void finish_tile(const ProductLaunchOf<T>& launch, const TilePlace& place,
                            ProductSums<cols>& sums) {
  using Tile = WarpTile<cols>;
  const ProductFinish<T>& finish = launch.finish;
  const std::int64_t first_row = place.row_tile * product_rows;
  const std::int64_t first_col = place.col_tile * cols;
  sums.each_pair([&](int row, int col, float& first, float& second) {
    const auto change = [&](std::int64_t at_col, float& sum) {
      const std::int64_t at_row = first_row + row;
      const bool exists = at_row < launch.rows && at_col < launch.cols;
      const bool counts =
          exists &&
          (finish.results.data == nullptr ||
           !(cuda::widen(finish.results.data[at_row * finish.results.stride + at_col]) <= 0.0f));
      sum = counts ? cuda::widen(cuda::narrow<T>(sum)) : 0.0f;
    };
    change(first_col + col, first);
    change(first_col + col + 1, second);
  });
  if (finish.sums == nullptr) return;

  constexpr int warps = product_threads / 32;
  constexpr int shares = product_threads / cols;
  __shared__ double of_warps[warps][Tile::cols_per_warp];
  __shared__ double of_shares[shares][cols];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
#pragma unroll
  for (int j = 0; j < Tile::col_tiles; ++j) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      double sum = 0;
#pragma unroll
      for (int i = 0; i < Tile::row_tiles; ++i) {
        sum += static_cast<double>(sums.values[i][j][k]) +
               static_cast<double>(sums.values[i][j][2 + k]);
      }
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2) {
        sum += __shfl_xor_sync(~0u, sum, distance);
      }
      if (lane < 4) of_warps[thread / 32][j * 8 + lane * 2 + k] = sum;
    }
  }
  __syncthreads();
  const std::int64_t row_tiles = (launch.rows + product_rows - 1) / product_rows;
  double* const partials = finish.partials + place.col_tile * cols * row_tiles;
  if (thread < cols) {
    double sum = 0;
    for (int warp = thread / Tile::cols_per_warp; warp < warps; warp += Tile::across) {
      sum += of_warps[warp][thread % Tile::cols_per_warp];
    }
    __stcg(partials + place.row_tile * cols + thread, sum);
  }
  if (!cuda::is_last_block(finish.counters + place.col_tile, static_cast<unsigned>(row_tiles))) {
    return;
  }
  const int col = thread % cols;
  double sum = 0;
#pragma unroll 4
  for (std::int64_t tile = thread / cols; tile < row_tiles; tile += shares) {
    sum += __ldcg(partials + tile * cols + col);
  }
  of_shares[thread / cols][col] = sum;
  __syncthreads();
  if (thread >= cols || first_col + thread >= launch.cols) return;
  sum = 0;
#pragma unroll
  for (int share = 0; share < shares; ++share) sum += of_shares[share][thread];
  finish.sums[first_col + thread] = cuda::narrow<T>(static_cast<float>(sum));
}

/// The shared memory that `multiply_tile` needs.
template <class T, int cols, bool left_in_row, bool right_in_row>
inline constexpr int product_shared_numbers =
    StagedTile<T, product_rows, left_in_row>::shared_numbers +
    StagedTile<T, cols, right_in_row>::shared_numbers;

/// `finishes`: does what `ProductFinish` says.
template <int cols, bool left_in_row, bool right_in_row, bool finishes, class T>
__device__ void multiply_tile(const ProductLaunchOf<T>& launch, const TilePlace& place,
                              std::uint16_t* shared) {
  using Left = StagedTile<T, product_rows, left_in_row>;
  using Right = StagedTile<T, cols, right_in_row>;
  using Tile = WarpTile<cols>;
  const std::int64_t first_row = place.row_tile * product_rows;
  const std::int64_t first_col = place.col_tile * cols;
  const std::int64_t begin = place.part * launch.split.inner_per_split;
  const std::int64_t end = min(launch.inner, begin + launch.split.inner_per_split);
  const bool has_ones = launch.column_sums != nullptr;
  Left left(launch.left, first_row, launch.rows - (has_ones ? 1 : 0), shared, has_ones);
  Right right(launch.right, first_col, launch.cols, shared + Left::shared_numbers);

  ProductSums<cols> sums;
  const auto rows_left = static_cast<int>(min(launch.rows - first_row, std::int64_t{product_rows}));
  left.fetch(begin, end);
  right.fetch(begin, end);
  for (std::int64_t at = begin; at < end; at += inner_chunk) {
    __syncthreads();
    left.keep();
    right.keep();
    __syncthreads();
    if (at + inner_chunk < end) {
      left.fetch(at + inner_chunk, end);
      right.fetch(at + inner_chunk, end);
    }
    const auto inner_left = static_cast<int>(min(end - at, std::int64_t{inner_chunk}));
    add_chunk<num_planes_of<T>>(left, right, inner_left, rows_left, sums);
  }
  if constexpr (num_planes_of < T >> 1) {
    sums.each_pair([&](int row, int col, float& first, float& second) {
      const auto make_sure = [&](std::int64_t at_col, float& sum) {
        if (isfinite(sum) || first_row + row >= launch.rows || at_col >= launch.cols) return;
        sum = plain_sum<left_in_row, right_in_row>(launch, first_row + row, at_col, begin, end);
      };
      make_sure(first_col + col, first);
      make_sure(first_col + col + 1, second);
    });
  }

  auto& flat = reinterpret_cast<float(&)[Tile::num_sums]>(sums.values);
  if (!add_across_splits(launch.split, place, flat, Tile::first_row() < rows_left)) return;
  if constexpr (finishes) finish_tile<cols>(launch, place, sums);
  sums.each_pair([&](int row, int col, float& first, float& second) {
    if (first_row + row >= launch.rows) return;
    if (first_col + col < launch.cols) {
      write_result(launch, first_row + row, first_col + col, first);
    }
    if (first_col + col + 1 < launch.cols) {
      write_result(launch, first_row + row, first_col + col + 1, second);
    }
  });
}

template <int cols, bool left_in_row, bool right_in_row, class T>
__global__ __launch_bounds__(product_threads, 2) void multiply_planes(
    const __grid_constant__ ProductLaunchOf<T> launch) {
  __shared__ __align__(16)
      std::uint16_t shared[product_shared_numbers<T, cols, left_in_row, right_in_row>];
  cuda::begin_overlapped();
  multiply_tile<cols, left_in_row, right_in_row, false>(launch, place_in_grid(), shared);
}

/// Two products of which neither waits for the other; those of `run_both`.
template <int first_cols, int second_cols, class T>
__global__ __launch_bounds__(product_threads, 2) void multiply_both(
    unsigned first_blocks, const __grid_constant__ ProductLaunchOf<T> first,
    const __grid_constant__ ProductLaunchOf<T> second) {
  constexpr int of_first = product_shared_numbers<T, first_cols, false, false>;
  constexpr int of_second = product_shared_numbers<T, second_cols, true, false>;
  __shared__ __align__(16) std::uint16_t shared[of_first > of_second ? of_first : of_second];
  cuda::begin_overlapped();
  if (blockIdx.x < first_blocks) {
    const std::int64_t tile = blockIdx.x / static_cast<unsigned>(first.split.splits);
    const int part = static_cast<int>(blockIdx.x) % first.split.splits;
    multiply_tile<first_cols, false, false, false>(first, {tile, 0, tile, part}, shared);
  } else {
    const std::int64_t tile = blockIdx.x - first_blocks;
    const std::int64_t row_tiles = (second.rows + product_rows - 1) / product_rows;
    multiply_tile<second_cols, true, false, true>(
        second, {tile % row_tiles, tile / row_tiles, tile, 0}, shared);
  }
}

}  // namespace tessera::ops
