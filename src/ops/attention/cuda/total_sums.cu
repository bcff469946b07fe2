// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/total_sums.hpp"

#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

template <class T>
__global__ __launch_bounds__(block_threads) void add_numbers(const double* sums,
                                                             std::int64_t num_sums, T* to) {
  cuda::begin_overlapped();
  __shared__ double partial[block_threads];
  double total = 0;
  for (std::int64_t i = threadIdx.x; i < num_sums; i += block_threads) total += sums[i];
  partial[threadIdx.x] = total;
  for (unsigned half = block_threads / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  if constexpr (std::is_same_v<T, double>) {
    *to = partial[0];
  } else {
    *to = cuda::narrow<T>(static_cast<float>(partial[0]));
  }
}

/// Adds the rows of a matrix: a block takes 8 columns, so that the many threads that it has for
/// each of them see few rows one after another.
constexpr int added_columns = 8;
constexpr int added_threads = 1024;

template <class T>
__global__ __launch_bounds__(added_threads) void add_rows(const float* sums, std::int64_t num_sums,
                                                          std::int64_t features, T* to) {
  cuda::begin_overlapped();
  constexpr int warps = added_threads / 32;
  __shared__ double partial[warps][added_columns];
  const int column = static_cast<int>(threadIdx.x) % added_columns;
  const std::int64_t feature = std::int64_t{blockIdx.x} * added_columns + column;
  double total = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x / added_columns; i < num_sums && feature < features;
       i += added_threads / added_columns) {
    total += static_cast<double>(sums[i * features + feature]);
  }
#pragma unroll
  for (int distance = added_columns; distance < 32; distance *= 2) {
    total += __shfl_xor_sync(~0u, total, distance);
  }
  if (threadIdx.x % 32 < added_columns) partial[threadIdx.x / 32][column] = total;
  __syncthreads();
  if (threadIdx.x >= added_columns || feature >= features) return;
  for (int w = 1; w < warps; ++w) total += partial[w][column];
  to[feature] = cuda::narrow<T>(static_cast<float>(total));
}

}  // namespace

void store_scale(const double* sums, std::int64_t num_sums, double* to, Stream stream) {
  cuda::launch_overlapped(add_numbers<double>, dim3(1), block_threads, stream, sums, num_sums, to);
}

void store_factor(const double* sums, std::int64_t num_sums, const Operand& to, Stream stream) {
  cuda::visit_type(to.type, [&](auto element) {
    using T = decltype(element);
    cuda::launch_overlapped(add_numbers<T>, dim3(1), block_threads, stream, sums, num_sums,
                            static_cast<T*>(to.data));
  });
}

void store_vector(const float* sums, std::int64_t num_sums, const Operand& to, Stream stream) {
  cuda::visit_type(to.type, [&](auto element) {
    using T = decltype(element);
    cuda::launch_overlapped(add_rows<T>, dim3(cuda::num_blocks(to.cols, added_columns)),
                            added_threads, stream, sums, num_sums, to.cols,
                            static_cast<T*>(to.data));
  });
}

}  // namespace tessera::ops
