// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/blocks_8x8.cuh"
#include "cuda/mma.cuh"

namespace tessera::cuda {

/// What wgmma (wgmma.cuh) does for 64 rows, for the 16 rows of each warp by its own instructions,
/// which every GPU from Ampere on has: D[16][2 * count] += A[16][16] B[16][2 * count]. A, D and B
/// lie as they do there; `rows` is the address of the first of the 16 rows of B.
template <class T, int count>
__device__ void multiply_rows(float (&d)[count], const std::uint32_t (&a)[4], std::uint32_t rows,
                              std::uint32_t block_bytes) {
  const auto lane = static_cast<std::uint32_t>(threadIdx.x) % 32;
  const std::uint32_t row = lane % 16;
#pragma unroll
  for (std::uint32_t pair = 0; pair < count / 8; ++pair) {
    const std::uint32_t unit = 2 * pair + lane / 16;
    std::uint32_t blocks[4];
    load_blocks_transposed(
        blocks, rows + pair / 4 * block_bytes + row * 128 + ((unit % 8) ^ (row % 8)) * 16);
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t first = 8 * pair + 4 * half;
      float sums[4] = {d[first], d[first + 1], d[first + 2], d[first + 3]};
      const std::uint32_t b[2] = {blocks[2 * half], blocks[2 * half + 1]};
      multiply_16x8<T>(sums, a, b);
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) d[first + i] = sums[i];
    }
  }
}

}  // namespace tessera::cuda
