// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/staged/edges.hpp"

#include <algorithm>

#include "cuda/edge_rows.cuh"
#include "cuda/launch.cuh"
#include "cuda/overlap.cuh"
#include "cuda/precision.cuh"
#include "cuda/search.cuh"
#include "cuda/vectors.cuh"
#include "ops/cuda/dropout.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;
constexpr int share = static_cast<int>(staged_share);

/// The edge and head of a number.
struct Place {
  EdgeOffset edge;
  std::int64_t head;

  __device__ Place(std::int64_t number, std::int64_t heads)
      : edge(heads == 1 ? number : number / heads), head(number - edge * heads) {}
};

__device__ void load_share(const float* from, std::int64_t first, float (&to)[share]) {
  const float4 four = *reinterpret_cast<const float4*>(from + first);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}

__device__ void store_share(float* to, std::int64_t first, const float (&from)[share]) {
  *reinterpret_cast<float4*>(to + first) = make_float4(from[0], from[1], from[2], from[3]);
}

__device__ void load_factors(const StagedLaunch& launch, std::int64_t first,
                             float (&factors)[share]) {
  if (launch.drops) {
    dropout_factors<share>(launch.dropout, static_cast<std::uint64_t>(first), factors);
    return;
  }
#pragma unroll
  for (float& factor : factors) factor = 1;
}

template <class T>
__global__ __launch_bounds__(block_threads) void weights_kernel(const StagedLaunch launch,
                                                                T* weights,
                                                                std::int64_t weights_stride) {
  cuda::begin_overlapped();
  const std::int64_t first = cuda::thread_number() * share;
  if (first >= launch.num_numbers) return;
  float scores[share];
  load_share(launch.scores, first, scores);
#pragma unroll
  for (int i = 0; i < share; ++i) {
    if (first + i >= launch.num_numbers) return;
    const Place place(first + i, launch.heads);
    const VertexId row = cuda::row_of_edge(launch.edge_rows, place.edge);
    const float log_sum = launch.log_sum[row * launch.log_sum_stride + place.head];
    weights[place.edge * weights_stride + place.head] =
        cuda::narrow<T>(expf(launch.scale * scores[i] - log_sum));
  }
}

__global__ __launch_bounds__(block_threads) void drop_kernel(const StagedLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t first = cuda::thread_number() * share;
  if (first >= launch.num_numbers) return;
  float weights[share], factors[share];
  load_share(launch.scores, first, weights);
  load_factors(launch, first, factors);
#pragma unroll
  for (int i = 0; i < share; ++i) weights[i] *= factors[i];
  store_share(launch.scores, first, weights);
}

/// The sum of all threads' numbers, for the first of them.
__device__ double sum_of_block(double mine) {
  __shared__ double partial[block_threads];
  partial[threadIdx.x] = mine;
  for (unsigned half = block_threads / 2; half >= 1; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  return partial[0];
}

template <bool with_gradients>
__global__ __launch_bounds__(block_threads) void differentiate_kernel(const StagedLaunch launch) {
  cuda::begin_overlapped();
  double scale_sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * block_threads * share;
  for (std::int64_t first = cuda::thread_number() * share; first < launch.num_numbers;
       first += step) {
    float scores[share], gradients[share], factors[share];
    load_share(launch.scores, first, scores);
    if constexpr (with_gradients) load_share(launch.gradients, first, gradients);
    load_factors(launch, first, factors);
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const Place place(first + i, launch.heads);
      const VertexId row = cuda::row_of_edge(launch.edge_rows, place.edge);
      const float* const state = launch.row_state + row * 2 * launch.heads + place.head;
      const float weight = expf(launch.scale * scores[i] - state[0]);
      if constexpr (with_gradients) {
        const float gradient = weight * (factors[i] * gradients[i] - state[launch.heads]);
        if (launch.scale_sums != nullptr && first + i < launch.num_numbers) {
          scale_sum += static_cast<double>(gradient) * static_cast<double>(scores[i]);
        }
        gradients[i] = launch.scale * gradient;
      }
      scores[i] = factors[i] * weight;
    }
    store_share(launch.scores, first, scores);
    if constexpr (with_gradients) store_share(launch.gradients, first, gradients);
  }
  if (launch.scale_sums == nullptr) return;
  const double sum = sum_of_block(scale_sum);
  if (threadIdx.x == 0) launch.scale_sums[blockIdx.x] = sum;
}

dim3 grid_of(const StagedLaunch& launch) {
  return dim3(cuda::num_blocks(launch.num_numbers, block_threads * staged_share));
}

}  // namespace

void compute_weights(const StagedLaunch& launch, Operand weights, Stream stream) {
  cuda::visit_type(weights.type, [&](auto element) {
    using T = decltype(element);
    cuda::launch_overlapped(weights_kernel<T>, grid_of(launch), block_threads, stream, launch,
                            static_cast<T*>(weights.data), weights.stride);
  });
}

void drop_weights(const StagedLaunch& launch, Stream stream) {
  cuda::launch_overlapped(drop_kernel, grid_of(launch), block_threads, stream, launch);
}

void differentiate_weights(const StagedLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(staged_blocks(launch.num_numbers)));
  cuda::launch_overlapped(
      launch.gradients != nullptr ? differentiate_kernel<true> : differentiate_kernel<false>, grid,
      block_threads, stream, launch);
}

std::int64_t staged_blocks(std::int64_t num_numbers) {
  const std::int64_t per_block = block_threads * staged_share;
  return std::min((num_numbers + per_block - 1) / per_block, max_staged_blocks);
}

}  // namespace tessera::ops
