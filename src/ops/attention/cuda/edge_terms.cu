// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/edge_terms.hpp"

#include "cuda/launch.cuh"
#include "cuda/overlap.cuh"
#include "cuda/search.cuh"
#include "ops/cuda/dropout.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;
constexpr int share = 4;  ///< numbers that have one draw of dropout

/// Plain numbers of `EdgeTermsCall`, passed to the GPU by value.
struct TermsLaunch {
  std::int64_t num_numbers;
  std::int64_t heads;
  const float* raw;
  const float* term;
  std::int64_t term_stride;
  float scale, slope;

  explicit TermsLaunch(const EdgeTermsCall& terms)
      : num_numbers(terms.num_numbers),
        heads(terms.heads),
        raw(static_cast<const float*>(terms.raw.data)),
        term(static_cast<const float*>(terms.term.data)),
        term_stride(terms.term.stride),
        scale(static_cast<float>(terms.scale)),
        slope(static_cast<float>(terms.slope)) {}

  __device__ std::int64_t edge_of(std::int64_t number) const {
    return heads == 1 ? number : number / heads;
  }
  __device__ float sum_inside(std::int64_t number) const {
    const std::int64_t edge = edge_of(number);
    return scale * raw[number] + term[edge * term_stride + (number - edge * heads)];
  }
};

__global__ __launch_bounds__(block_threads) void add_kernel(const TermsLaunch launch,
                                                            float* scores) {
  cuda::begin_overlapped();
  const std::int64_t number = cuda::thread_number();
  if (number >= launch.num_numbers) return;
  const float sum = launch.sum_inside(number);
  scores[number] = sum > 0 ? sum : launch.slope * sum;
}

__global__ __launch_bounds__(block_threads) void differentiate_kernel(const TermsLaunch launch,
                                                                      float* gradients,
                                                                      float* of_terms,
                                                                      std::int64_t stride) {
  cuda::begin_overlapped();
  const std::int64_t number = cuda::thread_number();
  if (number >= launch.num_numbers) return;
  float gradient = gradients[number];
  if (!(launch.sum_inside(number) > 0)) gradient *= launch.slope;
  if (of_terms != nullptr) {
    const std::int64_t edge = launch.edge_of(number);
    of_terms[edge * stride + (number - edge * launch.heads)] = gradient;
  }
  gradients[number] = launch.scale * gradient;
}

__global__ __launch_bounds__(block_threads) void drop_kernel(float* numbers, std::int64_t count,
                                                             const DropoutConstants dropout) {
  cuda::begin_overlapped();
  const std::int64_t first = cuda::thread_number() * share;
  if (first >= count) return;
  float factors[share];
  dropout_factors<share>(dropout, static_cast<std::uint64_t>(first), factors);
#pragma unroll
  for (int i = 0; i < share; ++i) {
    if (first + i < count) numbers[first + i] *= factors[i];
  }
}

dim3 grid_for(std::int64_t threads) { return dim3(cuda::num_blocks(threads, block_threads)); }

}  // namespace

void add_terms(const EdgeTermsCall& terms, const Operand& scores, Stream stream) {
  cuda::launch_overlapped(add_kernel, grid_for(terms.num_numbers), block_threads, stream,
                          TermsLaunch(terms), static_cast<float*>(scores.data));
}

void differentiate_terms(const EdgeTermsCall& terms, const Operand& gradients,
                         const Operand& of_terms, Stream stream) {
  cuda::launch_overlapped(differentiate_kernel, grid_for(terms.num_numbers), block_threads, stream,
                          TermsLaunch(terms), static_cast<float*>(gradients.data),
                          static_cast<float*>(of_terms.data), of_terms.stride);
}

void drop_numbers(const Operand& numbers, const DropoutConstants& dropout, Stream stream) {
  const std::int64_t count = numbers.rows * numbers.cols;
  cuda::launch_overlapped(drop_kernel, grid_for((count + share - 1) / share), block_threads, stream,
                          static_cast<float*>(numbers.data), count, dropout);
}

}  // namespace tessera::ops
