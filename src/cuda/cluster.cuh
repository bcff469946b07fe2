// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "cuda/launch.cuh"

/// Clusters: up to eight blocks, 16 where `allows_clusters_of` says so, which run at once, meet at
/// barriers and write into each other's shared memory. They came with overlapped launches.
namespace tessera::cuda {

/// Blocks of a cluster that every GPU with clusters has room for.
inline constexpr int most_cluster_blocks = 8;

/// Whether kernels that need clusters can be started on the current GPU.
inline bool has_clusters() { return overlaps_launches(); }

/// Announces to the other blocks of the cluster that what this thread wrote so far may be read.
__device__ inline void arrive_in_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}

/// The same where nothing was written.
__device__ inline void arrive_in_cluster_with_nothing() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}

/// Returns when all threads of the cluster have arrived as often as this one.
__device__ inline void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// Writes into the shared memory of another block, at the place that `own` is in this one. The
/// other block must have begun, and must not have ended.
template <class Value>
__device__ inline void store_in_cluster(Value* own, int block, Value value) {
#if __CUDA_ARCH__ >= 900
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
  std::uint32_t there = 0;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  if constexpr (sizeof(Value) == 8) {
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(value) : "memory");
  } else {
    static_assert(sizeof(Value) == 4);
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
  }
#else
  *own = value;
#endif
}

/// Lets a kernel run in clusters of more blocks than every GPU has room for; false where the
/// current one has none.
template <class... Parameters>
bool allows_clusters_of(void (*kernel)(Parameters...), unsigned cluster, unsigned threads) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
             "asking for large clusters");
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(cluster);
  config.blockDim = dim3(threads);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return clusters > 0;
}

/// Starts a kernel in clusters of `cluster` neighbouring blocks, as `launch_overlapped` does.
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), unsigned clusters, unsigned cluster,
                     unsigned threads, Stream stream, Arguments&&... arguments) {
  if (clusters == 0) return;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(num_blocks(std::int64_t{clusters} * cluster, 1));
  config.blockDim = dim3(threads);
  config.stream = raw(stream);
  config.attrs = attributes;
  config.numAttrs = 2;
  cuda_check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...),
             "starting a kernel in clusters");
}

}  // namespace tessera::cuda
