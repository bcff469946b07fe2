// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cuda/launch.cuh"
#include "ops/gemm/cuda/stream_rows.cuh"

namespace tessera::ops {

template <int cols>
void run_stream_rows(const Product& product, const ProductLaunch& launch, Stream stream) {
  // As much as any product needs: another thread's may be larger.
  cuda_check(cudaFuncSetAttribute(stream_rows<cols>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  StreamLayout::most_bytes),
             "asking for shared memory");
  const std::int64_t bytes = StreamLayout::bytes(launch.inner);
  constexpr std::int64_t tile_rows = stream_tile_rows * (stream_threads / 128);
  // Two blocks per processor of a large GPU: rows do not depend on each other, so any number may do
  // them.
  constexpr std::int64_t most_blocks = 264;
  const std::int64_t tiles = (launch.rows + tile_rows - 1) / tile_rows;
  const dim3 grid(static_cast<unsigned>(std::min(tiles, most_blocks)),
                  cuda::num_blocks(launch.cols, cols));
  cuda::launch_overlapped(stream_rows<cols>, grid, stream_threads, static_cast<std::size_t>(bytes),
                          stream, launch, product.right.inner_in_row);
}

}  // namespace tessera::ops
