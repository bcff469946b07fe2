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

/// How one cluster is started.
struct ClusterLaunch {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};

  ClusterLaunch(int blocks, int threads, int shared_bytes) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
    config.attrs = attributes;
    config.numAttrs = 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;
};

/// The same for the blocks of one cluster.
template <class... Parameters>
int room_in_cluster(void (*kernel)(Parameters...), int blocks, int threads) {
  if (!has_clusters() ||
      !allows_clusters_of(kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(threads))) {
    return 0;
  }
  const int bytes = take_shared_memory(kernel);
  const ClusterLaunch launch(blocks, threads, bytes);
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

/// Starts the blocks of one cluster, as `launch_overlapped` does.
template <class... Parameters, class... Arguments>
void launch_cluster(void (*kernel)(Parameters...), int blocks, int threads, int shared_bytes,
                    Stream stream, Arguments&&... arguments) {
  ClusterLaunch launch(blocks, threads, shared_bytes);
  launch.config.stream = raw(stream);
  launch.config.numAttrs = 2;
  cuda_check(cudaLaunchKernelEx(&launch.config, kernel, std::forward<Arguments>(arguments)...),
             "starting a cluster");
}

}  // namespace tessera::cuda
