// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/row_terms.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 256;

/// A warp for each row, a lane for 16 bytes at a time of each plane.
__global__ void row_terms_kernel(const BitRows codes, const RowNumbers row_scale,
                                 const RowTerms terms) {
  cuda::begin_overlapped();
  const std::int64_t row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  if (row >= codes.rows) return;
  long long sum = 0;
  for (int plane = 0; plane < codes.planes; ++plane) {
    const auto* words = reinterpret_cast<const uint4*>(codes.words + plane * codes.plane_words +
                                                       row * codes.row_words);
    long long count = 0;
    for (std::int64_t i = threadIdx.x % 32; i < codes.row_words / 4; i += 32) {
      const uint4 four = words[i];
      count += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    }
    sum += count << plane;
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  }
  if (threadIdx.x % 32 != 0) return;
  const float scale = row_scale.data == nullptr ? 1.0f : row_scale.data[row * row_scale.stride];
  float* const to = terms.data + row * terms.stride;
  to[0] = scale * static_cast<float>(sum);
  if (terms.has_scale) to[1] = scale;
}

}  // namespace

void cuda_row_terms(const BitRows& codes, const RowNumbers& row_scale, const RowTerms& terms,
                    Stream stream) {
  cuda::launch_overlapped(row_terms_kernel, cuda::num_blocks(codes.rows * 32, threads), threads,
                          stream, codes, row_scale, terms);
}

}  // namespace tessera::ops
