// SPDX-License-Identifier: Apache-2.0
#include "cuda/elements.cuh"
#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/rounding/formula.hpp"

namespace tessera::ops {
namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 512;

__global__ void clear_ranges(float* ranges, std::int64_t count) {
  cuda::begin_overlapped();
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) ranges[i] = 0;
}

/// How far numbers reach from 0.
struct Reach {
  float above = 0, below = 0;

  __device__ void take(float value) {
    above = fmaxf(above, value);
    below = fmaxf(below, -value);
  }
  /// All lanes of a warp get that of their numbers.
  __device__ void join_warp() {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      above = fmaxf(above, __shfl_xor_sync(0xFFFFFFFFu, above, distance));
      below = fmaxf(below, __shfl_xor_sync(0xFFFFFFFFu, below, distance));
    }
  }
  /// Numbers of at least 0 are in the order of their bits, so that the greatest of all blocks is
  /// the same in any order.
  __device__ void widen(float* range) const {
    atomicMax(reinterpret_cast<int*>(range), __float_as_int(above));
    atomicMax(reinterpret_cast<int*>(range + 1), __float_as_int(below));
  }
};

/// X with the factors of its rows, which become codes together.
template <class T>
struct Scaled {
  cuda::Rows<const T> x;
  cuda::Rows<const float> scale;  ///< absent: 1

  __device__ float factor(std::int64_t row) const {
    return scale.data == nullptr ? 1.0f : scale.data[row * scale.stride];
  }
  __device__ float value(std::int64_t row, std::int64_t col) const {
    return cuda::widen(x.data[row * x.stride + col]);
  }
  __device__ float scaled(std::int64_t row, std::int64_t col) const {
    return value(row, col) * factor(row);
  }
};

template <class T>
__global__ void matrix_range(const Scaled<T> x, std::int64_t rows, std::int64_t cols,
                             float* ranges) {
  cuda::begin_overlapped();
  Reach reach;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < rows * cols;
       i += std::int64_t{gridDim.x} * threads) {
    reach.take(x.scaled(i / cols, i % cols));
  }
  reach.join_warp();
  if (threadIdx.x % 32 == 0) reach.widen(ranges);
}

/// A warp for each row.
template <class T>
__global__ void row_ranges(const Scaled<T> x, std::int64_t rows, std::int64_t cols, float* ranges) {
  cuda::begin_overlapped();
  const std::int64_t row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (row >= rows) return;
  Reach reach;
  for (std::int64_t j = threadIdx.x % 32; j < cols; j += 32) reach.take(x.scaled(row, j));
  reach.join_warp();
  if (threadIdx.x % 32 == 0) {
    ranges[row * 2] = reach.above;
    ranges[row * 2 + 1] = reach.below;
  }
}

/// A block has some rows of 256 columns.
template <class T>
__global__ void column_ranges(const Scaled<T> x, std::int64_t rows, std::int64_t cols,
                              float* ranges) {
  cuda::begin_overlapped();
  const std::int64_t col = std::int64_t{blockIdx.y} * threads + threadIdx.x;
  if (col >= cols) return;
  Reach reach;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) reach.take(x.scaled(row, col));
  reach.widen(ranges + col * 2);
}

constexpr int limited_columns = 32;  ///< of a block, which has as many lanes for each

/// Ranges of columns as far as `ColumnLimit` lets them reach.
template <class T>
__global__ void __launch_bounds__(limited_columns * 32)
    limit_columns(const Scaled<T> x, std::int64_t rows, std::int64_t cols, int bits,
                  float* ranges) {
  __shared__ std::uint64_t squares[limited_columns], counts[limited_columns];
  cuda::begin_overlapped();
  const auto of_block = static_cast<int>(threadIdx.x) % limited_columns;
  const std::int64_t col = std::int64_t{blockIdx.x} * limited_columns + of_block;
  const bool leads = threadIdx.x < limited_columns;
  if (leads) squares[of_block] = counts[of_block] = 0;
  __syncthreads();
  float reach = 0;
  if (col < cols) {
    reach = fmaxf(ranges[col * 2], ranges[col * 2 + 1]);
    ColumnLimit own;
#pragma unroll 8
    for (std::int64_t i = threadIdx.x / limited_columns; i < ColumnLimit::num_rows(rows); i += 32) {
      own.take(x.scaled(ColumnLimit::row(i, rows), col), reach);
    }
    atomicAdd(reinterpret_cast<unsigned long long*>(squares + of_block), own.squares);
    atomicAdd(reinterpret_cast<unsigned long long*>(counts + of_block), own.count);
  }
  __syncthreads();
  if (!leads || col >= cols) return;
  const float most = ColumnLimit{squares[of_block], counts[of_block]}(reach, bits);
  ranges[col * 2] = fminf(ranges[col * 2], most);
  ranges[col * 2 + 1] = fminf(ranges[col * 2 + 1], most);
}

template <class T>
__global__ void round_numbers(const Scaled<T> x, std::int64_t rows, std::int64_t cols, int bits,
                              const float* ranges, RoundingRange of, cuda::Rows<T> y) {
  cuda::begin_overlapped();
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= rows * cols) return;
  const std::int64_t row = i / cols;
  const std::int64_t number = of == RoundingRange::matrix ? 0
                              : of == RoundingRange::rows ? row
                                                          : i % cols;
  const float* range = ranges + number * 2;
  const CodeSteps<float> steps(range[0], range[1], bits);
  const float rounded = steps(x.value(row, i % cols), x.factor(row));
  y.data[row * y.stride + i % cols] = cuda::narrow<T>(rounded);
}

template <class T>
void find_ranges(const RoundingCall& call, const Scaled<T>& x, Stream stream) {
  const std::int64_t rows = call.x.rows;
  const std::int64_t cols = call.x.cols;
  const std::int64_t blocks =
      std::min<std::int64_t>(most_blocks, (rows * cols + threads - 1) / threads);
  switch (call.range) {
    case RoundingRange::rows:
      cuda::launch_overlapped(row_ranges<T>, cuda::num_blocks(rows * 32, threads), threads, stream,
                              x, rows, cols, call.found_ranges);
      break;
    case RoundingRange::columns:
      cuda::launch_overlapped(clear_ranges, cuda::num_blocks(cols * 2, threads), threads, stream,
                              call.found_ranges, cols * 2);
      cuda::launch_overlapped(
          column_ranges<T>,
          dim3(static_cast<unsigned>(std::min(most_blocks, rows)), cuda::num_blocks(cols, threads)),
          threads, stream, x, rows, cols, call.found_ranges);
      if (!ColumnLimit::applies(call.bits)) break;
      cuda::launch_overlapped(limit_columns<T>, cuda::num_blocks(cols, limited_columns),
                              limited_columns * 32, stream, x, rows, cols, call.bits,
                              call.found_ranges);
      break;
    case RoundingRange::matrix:
      cuda::launch_overlapped(clear_ranges, 1, threads, stream, call.found_ranges, std::int64_t{2});
      cuda::launch_overlapped(matrix_range<T>, static_cast<unsigned>(blocks), threads, stream, x,
                              rows, cols, call.found_ranges);
      break;
  }
}

}  // namespace

void CudaDenseRun::run(const RoundingCall& call) const {
  const std::int64_t rows = call.x.rows;
  const std::int64_t cols = call.x.cols;
  if (rows == 0 || cols == 0) return;
  cuda::visit_type(call.x.type, [&](auto element) {
    using T = decltype(element);
    Scaled<T> x{rows_of<T>(call.x), {}};
    if (call.row_scale.data != nullptr) x.scale = rows_of<float>(call.row_scale);
    if (call.found_ranges != nullptr) find_ranges(call, x, stream);
    cuda::launch_overlapped(round_numbers<T>, cuda::num_blocks(rows * cols, threads), threads,
                            stream, x, rows, cols, call.bits, call.ranges, call.range,
                            rows_of<T>(call.y));
  });
}

}  // namespace tessera::ops
