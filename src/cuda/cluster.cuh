// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "cuda/launch.cuh"

/// Clusters: up to eight blocks, 16 where `room_in_cluster` says so (together.cuh), which run at
/// once, meet at barriers and write into each other's shared memory. They came with overlapped
/// launches.
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

/// How clusters of neighbouring blocks are started. A block alone is one without being asked for.
struct ClusterLaunch {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};

  ClusterLaunch(dim3 grid, unsigned cluster, unsigned threads, std::size_t shared_bytes) {
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {cluster, 1, 1};
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;
};

/// Starts a kernel in clusters of `cluster` neighbouring blocks, by which the grid's width can be
/// divided, as `launch_overlapped` does.
template <class... Parameters, class... Arguments>
void launch_clusters(void (*kernel)(Parameters...), dim3 grid, unsigned cluster, unsigned threads,
                     std::size_t shared_bytes, Stream stream, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0) return;
  ClusterLaunch launch(grid, cluster, threads, shared_bytes);
  launch.config.stream = raw(stream);
  cuda_check(cudaLaunchKernelEx(&launch.config, kernel, std::forward<Arguments>(arguments)...),
             "starting a kernel in clusters");
}

}  // namespace tessera::cuda
