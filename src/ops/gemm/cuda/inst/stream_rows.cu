// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_rows.cuh"

#include <algorithm>

#include "cuda/launch.cuh"

namespace tessera::ops {

template <int cols, bool fused>
void run_stream_rows(const Product& product, Stream stream) {
  using Layout = StreamLayout;
  // As much as any product needs: another thread's may be larger.
  cuda::allow_shared(stream_rows<cols, fused>,
                     Layout::most_bytes - (fused ? stream_moments_bytes : 0));
  const std::int64_t bytes = Layout::bytes(product.inner, fused);
  constexpr std::int64_t tile_rows = stream_tile_rows * (stream_threads / 128);
  const std::int64_t tiles = (product.rows + tile_rows - 1) / tile_rows;
  const dim3 grid(static_cast<unsigned>(std::min(tiles, most_stream_blocks)),
                  cuda::num_blocks(product.cols, cols));
  cuda::launch_overlapped(stream_rows<cols, fused>, grid, stream_threads,
                          static_cast<std::size_t>(bytes), stream, product.launch(),
                          product.right_in_row);
}

template void run_stream_rows<32, false>(const Product&, Stream);
template void run_stream_rows<32, true>(const Product&, Stream);
template void run_stream_rows<64, false>(const Product&, Stream);
template void run_stream_rows<64, true>(const Product&, Stream);

}  // namespace tessera::ops
