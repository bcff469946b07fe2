// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"

/// Kernels whose blocks all run at once, so that they may wait for each other.
namespace tessera::cuda {

/// Whether the current GPU can promise that.
inline bool launches_together() {
  int device = 0, can = 0;
  cuda_check(cudaGetDevice(&device), "reading the current GPU");
  cuda_check(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, device),
             "asking for blocks that run at once");
  return can != 0;
}

/// Starts no more blocks than the GPU holds at once (occupancy.cuh); else it is an error.
template <class... Parameters, class... Arguments>
void launch_together(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                     Stream stream, Arguments&&... arguments) {
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = raw(stream);
  config.attrs = &together;
  config.numAttrs = 1;
  cuda_check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
             "starting blocks that run at once");
}

}  // namespace tessera::cuda
