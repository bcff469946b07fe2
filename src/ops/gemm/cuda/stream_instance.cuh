// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cuda/launch.cuh"
#include "ops/gemm/cuda/stream_rows.cuh"

namespace tessera::ops {

template <int cols, bool fused>
void run_stream_rows(const Product& product, const ProductLaunch& launch, Stream stream) {
  using Layout = StreamLayout;
  // As much as any product needs: another thread's may be larger.
  cuda_check(
      cudaFuncSetAttribute(stream_rows<cols, fused>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           Layout::most_bytes - (fused ? stream_moments_bytes : 0)),
      "asking for shared memory");
  const std::int64_t bytes = Layout::bytes(launch.inner, fused);
  constexpr std::int64_t tile_rows = stream_tile_rows * (stream_threads / 128);
  const std::int64_t tiles = (launch.rows + tile_rows - 1) / tile_rows;
  const dim3 grid(static_cast<unsigned>(std::min(tiles, most_stream_blocks)),
                  cuda::num_blocks(launch.cols, cols));
  cuda::launch_overlapped(stream_rows<cols, fused>, grid, stream_threads,
                          static_cast<std::size_t>(bytes), stream, launch,
                          product.right.inner_in_row);
}

}  // namespace tessera::ops
