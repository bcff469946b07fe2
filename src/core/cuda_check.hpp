// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "tessera/core/error.hpp"

namespace tessera {

/// Throws unless a CUDA call succeeded. `doing` completes "while …".
inline void cuda_check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw Error(status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::internal,
              std::string(cudaGetErrorString(status)) + " while " + doing, "CUDA");
}

}  // namespace tessera
