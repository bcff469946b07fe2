// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "core/cuda_check.hpp"
#include "core/device_traits.hpp"

namespace tessera::cuda {

/// Blocks that the current GPU holds at once; also lets the kernel have the shared memory it needs,
/// or as much as it ever needs where launches differ.
template <class... Parameters>
int resident_blocks(void (*kernel)(Parameters...), int threads, int shared_bytes,
                    int most_shared_bytes = 0) {
  const int allowed = most_shared_bytes > shared_bytes ? most_shared_bytes : shared_bytes;
  if (allowed > 0) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, allowed),
               "asking for shared memory");
  }
  int device = 0, blocks = 0;
  cuda_check(cudaGetDevice(&device), "reading the current GPU");
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                           static_cast<std::size_t>(shared_bytes)),
             "reading the occupancy of a kernel");
  return device_traits({DeviceKind::cuda, device}).processors * blocks;
}

}  // namespace tessera::cuda
