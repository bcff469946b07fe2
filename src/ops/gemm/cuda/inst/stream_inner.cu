// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_inner.cuh"

#include "cuda/launch.cuh"

namespace tessera::ops {

template <int across>
void run_stream_inner(dim3 grid, const ProductLaunch& launch, Stream stream) {
  constexpr int bytes = stream_inner_bytes<across>();
  cuda_check(cudaFuncSetAttribute(stream_inner<across>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  bytes),
             "asking for shared memory");
  cuda::launch_overlapped(stream_inner<across>, grid, inner_threads,
                          static_cast<std::size_t>(bytes), stream, launch);
}

template void run_stream_inner<1>(dim3, const ProductLaunch&, Stream);
template void run_stream_inner<2>(dim3, const ProductLaunch&, Stream);

}  // namespace tessera::ops
