// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "ops/gemm/cuda/stream_inner.cuh"

namespace tessera::ops {

template <int across, bool fused>
void run_stream_inner(dim3 grid, const ProductLaunch& launch, Stream stream) {
  constexpr int bytes = stream_inner_bytes<across>();
  cuda_check(cudaFuncSetAttribute(stream_inner<across, fused>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
  cuda::launch_overlapped(stream_inner<across, fused>, grid, inner_threads,
                          static_cast<std::size_t>(bytes), stream, launch);
}

}  // namespace tessera::ops
