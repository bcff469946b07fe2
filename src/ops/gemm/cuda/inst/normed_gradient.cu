// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/normed_gradient.cuh"

#include "cuda/launch.cuh"

namespace tessera::ops {

void run_normed_gradient(const NormedLaunch& launch, Stream stream) {
  constexpr int bytes = NormedLayout::bytes;
  cuda_check(
      cudaFuncSetAttribute(normed_gradient, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
      "asking for shared memory");
  cuda::launch_overlapped(normed_gradient, dim3(static_cast<unsigned>(launch.split.splits)),
                          normed_threads, static_cast<std::size_t>(bytes), stream, launch);
}

}  // namespace tessera::ops
