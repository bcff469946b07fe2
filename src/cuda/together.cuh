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

/// Starts so many blocks, or returns false where they cannot all run at once: a context may have
/// fewer processors than the GPU that was asked (occupancy.cuh).
template <class... Parameters, class... Arguments>
[[nodiscard]] bool launch_together(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
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
  const cudaError_t status =
      cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  if (status == cudaErrorCooperativeLaunchTooLarge) {
    cudaGetLastError();
    return false;
  }
  cuda_check(status, "starting blocks that run at once");
  return true;
}

}  // namespace tessera::cuda
