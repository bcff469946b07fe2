// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/normed_gradient.cuh"

#include "cuda/launch.cuh"

namespace tessera::ops {

void run_normed_gradient(const NormedLaunch& launch, Stream stream) {
  constexpr int bytes = NormedLayout::bytes;
  const bool reads_columns = launch.x_columns.numbers != nullptr;
  const bool factors = launch.gradient.data == nullptr;
  const auto kernel =
      reads_columns ? (factors ? normed_gradient<true, true> : normed_gradient<true, false>)
                    : (factors ? normed_gradient<false, true> : normed_gradient<false, false>);
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
  cuda::launch_overlapped(kernel, dim3(static_cast<unsigned>(launch.split.splits)), normed_threads,
                          static_cast<std::size_t>(bytes), stream, launch);
}

}  // namespace tessera::ops
