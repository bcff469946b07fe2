// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/mma.cuh"
#include "cuda/overlap.cuh"
#include "ops/gemm/cuda/neighbours.cuh"
#include "ops/gemm/cuda/planes.cuh"
#include "ops/gemm/cuda/split_sums.cuh"

/// Products with a small result of two matrices that have very many rows, A^T B: the gradients of
/// weights. Rows of both factors are copied into shared memory as they lie, several stages ahead;
/// warps take what they multiply from there and cut it into bf16 planes in registers.
namespace tessera::ops {

inline constexpr int inner_threads = product_threads;
/// Rows of both factors that are copied together.
inline constexpr int inner_lines = 32;
inline constexpr int inner_stages = 4;
inline constexpr int inner_tile_rows = 64;

/// Shared memory of a block whose result has `eights` times 16 columns. Lines are four numbers
/// longer than a multiple of 16, so that the lanes of a warp read from different banks.
template <int eights>
struct InnerLayout {
  static constexpr int cols = eights * 16;
  static constexpr int left_stride = inner_tile_rows + 4;
  static constexpr int right_stride = cols + 4;
  static constexpr int left_numbers = inner_lines * left_stride;
  static constexpr int stage_numbers = left_numbers + inner_lines * right_stride;
  static constexpr int num_columns = inner_tile_rows + cols;
  static constexpr int stages_bytes =
      inner_stages * stage_numbers * static_cast<int>(sizeof(float));

  static constexpr int bytes(bool fused) {
    return stages_bytes + (fused ? num_columns * static_cast<int>(sizeof(cuda::ColumnNumbers)) : 0);
  }
};

/// Begins to copy 4, 8 or 16 bytes into shared memory, of which `count` come from memory and the
/// others are 0.
template <int bytes>
__device__ void copy_or_zero(float* shared, const float* global, int count) {
  if constexpr (bytes == 16) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cuda::shared_address(shared)),
        "l"(global), "r"(count)
        : "memory");
  } else {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(cuda::shared_address(shared)),
        "l"(global), "n"(bytes), "r"(count)
        : "memory");
  }
}

/// Begins to copy the lines [begin, begin + inner_lines) of a factor, `width` columns of them,
/// `at_once` together. What lies past `end` or past the last column is 0.
template <int width, int stride, int at_once>
__device__ void copy_lines(cuda::Rows<const float> matrix, std::int64_t cols, std::int64_t begin,
                           std::int64_t end, float* to) {
  constexpr int per_line = width / at_once;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < inner_lines * per_line; i += inner_threads) {
    const int line = i / per_line;
    const int col = i % per_line * at_once;
    const std::int64_t row = begin + line;
    const std::int64_t left = row < end ? cols - col : 0;
    const int count = left <= 0 ? 0 : left < at_once ? static_cast<int>(left) : at_once;
    const float* const from = count == 0 ? matrix.data : matrix.data + row * matrix.stride + col;
    copy_or_zero<at_once* static_cast<int>(sizeof(float))>(to + line * stride + col, from,
                                                           count * static_cast<int>(sizeof(float)));
  }
}

template <int width, int stride>
__device__ void copy_lines(cuda::Rows<const float> matrix, int at_once, std::int64_t cols,
                           std::int64_t begin, std::int64_t end, float* to) {
  switch (at_once) {
    case 4: return copy_lines<width, stride, 4>(matrix, cols, begin, end, to);
    case 2: return copy_lines<width, stride, 2>(matrix, cols, begin, end, to);
    default: return copy_lines<width, stride, 1>(matrix, cols, begin, end, to);
  }
}

/// Four numbers of one column, of the lines that a lane has of 16, as planes.
template <int stride, bool fused>
__device__ FourInPlanes column_planes(const float* at, const ReadColumns& reading,
                                      const cuda::ColumnNumbers* column) {
  float values[4] = {at[0], at[stride], at[8 * stride], at[9 * stride]};
  if constexpr (fused) {
    if (reading.numbers != nullptr) {
      const cuda::ColumnNumbers numbers = *column;
#pragma unroll
      for (float& value : values) value = reading.value(value, numbers);
    }
  }
  return FourInPlanes(values);
}

/// What a warp has of the result: 32 of its rows and half of its columns. The two groups of four
/// warps share the lines of a stage.
template <int eights, bool fused>
class InnerWarp {
 public:
  using Layout = InnerLayout<eights>;

  __device__ InnerWarp()
      : lane_(static_cast<int>(threadIdx.x) % 32),
        group_(static_cast<int>(threadIdx.x) / 128),
        first_row_(static_cast<int>(threadIdx.x) / 32 % 2 * 32),
        first_col_(static_cast<int>(threadIdx.x) / 64 % 2 * (eights * 8)) {}

  /// Adds the product of the group's 16 lines. Sums in tensor cores are cut off, not rounded, so
  /// those of the lines are summed from 0, their smallest parts first, and added to the others by
  /// an ordinary addition.
  __device__ void add(const ProductLaunch& launch, const float* stage,
                      const cuda::ColumnNumbers* columns) {
    constexpr int pairs[6][2] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
    const int line = group_ * 16 + lane_ % 4 * 2;
    const int row = first_row_ + lane_ / 4;
    const int col = first_col_ + lane_ / 4;
    const float* const left = stage + line * Layout::left_stride + row;
    const float* const right = stage + Layout::left_numbers + line * Layout::right_stride + col;
    std::uint32_t of_left[2][num_planes][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto planes = column_planes<Layout::left_stride, fused>(
          left + i * 8, launch.left_columns, columns + row + i * 8);
#pragma unroll
      for (int plane = 0; plane < num_planes; ++plane) {
        of_left[i / 2][plane][i % 2] = planes.words[plane][0];
        of_left[i / 2][plane][2 + i % 2] = planes.words[plane][1];
      }
    }
#pragma unroll
    for (int j = 0; j < eights; ++j) {
      const auto of_right = column_planes<Layout::right_stride, fused>(
          right + j * 8, launch.right_columns, columns + inner_tile_rows + col + j * 8);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float chunk[4] = {};
#pragma unroll
        for (const auto& [p, q] : pairs) {
          cuda::multiply_16x8<__nv_bfloat16>(chunk, of_left[i][p], of_right.words[q]);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) sums_[i][j][k] += chunk[k];
      }
    }
  }

  /// Adds what both groups found: each keeps 16 of the 32 rows. `shared` is memory that nobody
  /// reads any more.
  __device__ void add_groups(float* shared, float (&kept)[eights * 4]) const {
    const int place = static_cast<int>(threadIdx.x) % 128;
    float* const sent = shared + group_ * (eights * 4 * 128);
    const float* const received = shared + (1 - group_) * (eights * 4 * 128);
#pragma unroll
    for (int i = 0; i < eights * 4; ++i) {
      const float upper = sums_[0][i / 4][i % 4], lower = sums_[1][i / 4][i % 4];
      kept[i] = group_ == 0 ? upper : lower;
      sent[i * 128 + place] = group_ == 0 ? lower : upper;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < eights * 4; ++i) kept[i] += received[i * 128 + place];
  }

  /// Where a sum that was kept stands in the result.
  __device__ int row_of(int i) const {
    return first_row_ + group_ * 16 + i % 4 / 2 * 8 + lane_ / 4;
  }
  __device__ int col_of(int i) const { return first_col_ + i / 4 * 8 + lane_ % 4 * 2 + i % 2; }

 private:
  int lane_, group_, first_row_, first_col_;
  float sums_[2][eights][4] = {};
};

/// Writes what is done to columns of both factors into shared memory; 0 for those that only fill
/// up.
template <int eights>
__device__ void keep_inner_columns(const ProductLaunch& launch, cuda::ColumnNumbers* columns) {
  for (int i = static_cast<int>(threadIdx.x); i < InnerLayout<eights>::num_columns;
       i += inner_threads) {
    const bool is_left = i < inner_tile_rows;
    const int col = is_left ? i : i - inner_tile_rows;
    const ReadColumns& reading = is_left ? launch.left_columns : launch.right_columns;
    const bool exists = reading.numbers != nullptr && col < (is_left ? launch.rows : launch.cols);
    columns[i] = exists ? reading.numbers[col] : cuda::ColumnNumbers{0, 0, 0, 0};
  }
}

template <int eights, bool fused>
__global__ __launch_bounds__(inner_threads,
                             2) void stream_inner(const __grid_constant__ ProductLaunch launch) {
  using Layout = InnerLayout<eights>;
  extern __shared__ __align__(16) float inner_shared[];
  auto* const columns =
      reinterpret_cast<cuda::ColumnNumbers*>(inner_shared + inner_stages * Layout::stage_numbers);
  const std::int64_t begin = blockIdx.x * launch.split.inner_per_split;
  const std::int64_t end = min(launch.inner, begin + launch.split.inner_per_split);
  const int left_at_once = neighbours_at_once(launch.left);
  const int right_at_once = neighbours_at_once(launch.right);
  const auto copy = [&](std::int64_t at, int stage) {
    float* const to = inner_shared + stage * Layout::stage_numbers;
    if (at < end) {
      copy_lines<inner_tile_rows, Layout::left_stride>(launch.left, left_at_once, launch.rows, at,
                                                       end, to);
      copy_lines<Layout::cols, Layout::right_stride>(launch.right, right_at_once, launch.cols, at,
                                                     end, to + Layout::left_numbers);
    }
    cuda::commit_copies();
  };
  cuda::begin_overlapped();
#pragma unroll
  for (int stage = 0; stage < inner_stages - 1; ++stage) copy(begin + stage * inner_lines, stage);
  if constexpr (fused) keep_inner_columns<eights>(launch, columns);

  InnerWarp<eights, fused> warp;
  int stage = 0;
  for (std::int64_t at = begin; at < end; at += inner_lines) {
    cuda::wait_for_copies<inner_stages - 2>();
    __syncthreads();
    // All have read the stage that comes before this one.
    copy(at + (inner_stages - 1) * inner_lines, (stage + inner_stages - 1) % inner_stages);
    warp.add(launch, inner_shared + stage * Layout::stage_numbers, columns);
    stage = (stage + 1) % inner_stages;
  }
  cuda::wait_for_copies<0>();
  __syncthreads();
  float sums[eights * 4];
  warp.add_groups(inner_shared, sums);
#pragma unroll
  for (int i = 0; i < eights * 4; ++i) {
    if (isfinite(sums[i]) || warp.row_of(i) >= launch.rows || warp.col_of(i) >= launch.cols) {
      continue;
    }
    sums[i] = plain_sum<false, false>(launch, warp.row_of(i), warp.col_of(i), begin, end);
  }
  const TilePlace place{0, 0, 0, static_cast<int>(blockIdx.x)};
  if (!add_across_splits(launch.split, place, sums)) return;
#pragma unroll
  for (int i = 0; i < eights * 4; ++i) {
    if (warp.row_of(i) >= launch.rows || warp.col_of(i) >= launch.cols) continue;
    write_result(launch, warp.row_of(i), warp.col_of(i), sums[i]);
  }
}

}  // namespace tessera::ops
