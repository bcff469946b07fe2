// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/attention/cuda/fused/launch.hpp"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

__global__ __launch_bounds__(block_threads) void add_numbers(const double* sums,
                                                             std::int64_t num_sums, double* to) {
  cuda::begin_overlapped();
  __shared__ double partial[block_threads];
  double total = 0;
  for (std::int64_t i = threadIdx.x; i < num_sums; i += block_threads) total += sums[i];
  partial[threadIdx.x] = total;
  for (unsigned half = block_threads / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *to = partial[0];
}

}  // namespace

void store_scale(const double* sums, std::int64_t num_sums, double* to, Stream stream) {
  cuda::launch_overlapped(add_numbers, dim3(1), block_threads, stream, sums, num_sums, to);
}

}  // namespace tessera::ops
