// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/normed_weight.cuh"

#include "cuda/launch.cuh"

namespace tessera::ops {

void run_normed_weight(const NormedLaunch& launch, Stream stream) {
  constexpr int bytes = WeightLayout::bytes;
  const auto kernel = launch.in <= 64   ? normed_weight<0>
                      : launch.in <= 80 ? normed_weight<16>
                                        : normed_weight<32>;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
  cuda::launch_overlapped(kernel, dim3(static_cast<unsigned>(launch.split.splits)), weight_threads,
                          static_cast<std::size_t>(bytes), stream, launch);
}

}  // namespace tessera::ops
