// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cluster.cuh"
#include "cuda/occupancy.cuh"

/// Kernels whose blocks all run at once, so that they may wait for each other: in a grid, or in one
/// cluster.
namespace tessera::cuda {

/// Lets a kernel have all shared memory of the current GPU beside what it declares, and returns how
/// many bytes that is.
template <class... Parameters>
int take_shared_memory(void (*kernel)(Parameters...)) {
  int device = 0, bytes = 0;
  cudaFuncAttributes attributes{};
  cuda_check(cudaGetDevice(&device), "reading the current GPU");
  cuda_check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "asking for the size of shared memory");
  cuda_check(cudaFuncGetAttributes(&attributes, kernel), "asking for a kernel's shared memory");
  bytes -= static_cast<int>(attributes.sharedSizeBytes);
  if (bytes <= 0) return 0;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
  return bytes;
}

/// Shared memory that each of so many blocks may have beside what the kernel declares; 0 where they
/// cannot all run at once on the current GPU.
template <class... Parameters>
int room_in_grid(void (*kernel)(Parameters...), int blocks, int threads) {
  int device = 0, can = 0;
  cuda_check(cudaGetDevice(&device), "reading the current GPU");
  cuda_check(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, device),
             "asking for blocks that run at once");
  if (can == 0) return 0;
  const int bytes = take_shared_memory(kernel);
  return bytes > 0 && resident_blocks(kernel, threads, bytes) >= blocks ? bytes : 0;
}

/// The same for the blocks of one cluster, which may be more than every GPU has room for.
template <class... Parameters>
int room_in_cluster(void (*kernel)(Parameters...), int blocks, int threads) {
  if (!has_clusters()) return 0;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
             "asking for large clusters");
  const int bytes = take_shared_memory(kernel);
  const auto cluster = static_cast<unsigned>(blocks);
  ClusterLaunch launch(dim3(cluster), cluster, static_cast<unsigned>(threads),
                       static_cast<std::size_t>(bytes));
  launch.config.attrs = &launch.attributes[1];  // the clusters alone
  launch.config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return clusters > 0 ? bytes : 0;
}

/// Starts so many blocks, or returns false where they cannot all run at once: a context may have
/// fewer processors than the GPU that was asked (occupancy.cuh).
template <class... Parameters, class... Arguments>
[[nodiscard]] bool launch_together(void (*kernel)(Parameters...), int blocks, int threads,
                                   int shared_bytes, Stream stream, Arguments&&... arguments) {
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
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
