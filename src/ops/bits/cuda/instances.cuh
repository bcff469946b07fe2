// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "core/cuda_check.hpp"
#include "cuda/launch.cuh"
#include "ops/bits/cuda/launch.hpp"

/// From a policy to the functions that a plan calls.
namespace tessera::ops {

template <class... Parameters>
void allow_shared(void (*kernel)(Parameters...), int bytes) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
}

/// Allows as much as the current device has for a block, and returns it.
template <class... Parameters>
int allow_all_shared(void (*kernel)(Parameters...)) {
  int device = 0;
  int bytes = 0;
  cuda_check(cudaGetDevice(&device), "asking for the device");
  cuda_check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
             "asking for shared memory");
  allow_shared(kernel, bytes);
  return bytes;
}

/// Starts a kernel whose blocks come in clusters of so many that see each other's shared memory.
template <class... Parameters, class... Arguments>
void launch_in_clusters(void (*kernel)(Parameters...), dim3 grid, int threads, int bytes,
                        int cluster, Stream stream, const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0) return;
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (cuda::overlaps_launches()) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = static_cast<unsigned>(cluster);
    attributes[count].val.clusterDim.y = 1;
    attributes[count++].val.clusterDim.z = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = cuda::raw(stream);
  config.attrs = attributes;
  config.numAttrs = count;
  cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...), "starting a kernel");
}

inline dim3 bit_grid(const BitProduct& product, int rows, int width, int split) {
  return dim3(cuda::num_blocks(product.a.rows, rows) * static_cast<unsigned>(split),
              cuda::num_blocks(product.b.rows, width));
}

}  // namespace tessera::ops
