// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "ops/gemm/cuda/stream_inner.cuh"

namespace tessera::ops {

template <int more, bool fused>
void run_stream_inner(const ProductLaunch& launch, Stream stream) {
  constexpr int bytes = stream_inner_bytes<more>();
  cuda_check(cudaFuncSetAttribute(stream_inner<more, fused>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
  cuda::launch_overlapped(stream_inner<more, fused>,
                          dim3(static_cast<unsigned>(launch.split.splits)), inner_threads,
                          static_cast<std::size_t>(bytes), stream, launch);
}

}  // namespace tessera::ops
