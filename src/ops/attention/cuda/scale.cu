// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/fused/launch.hpp"

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

}  // namespace tessera::ops
