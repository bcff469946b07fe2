// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/cuda_check.hpp"

namespace tessera::cuda {

/// Lets blocks of a kernel have so many bytes of dynamic shared memory.
template <class... Parameters>
void allow_shared(void (*kernel)(Parameters...), int bytes) {
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
}

/// Shared memory from the next multiple of 1024 on, where the matrix units want their lines: a
/// block asks for as much more.
struct AlignedShared {
  std::uint32_t address;
  char* memory;

  __device__ explicit AlignedShared(char* shared) {
    const auto unaligned = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    address = (unaligned + 1023) / 1024 * 1024;
    memory = shared + (address - unaligned);
  }
};

}  // namespace tessera::cuda
