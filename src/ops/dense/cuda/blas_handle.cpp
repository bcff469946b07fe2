// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/cuda/blas_handle.hpp"

#include <map>
#include <string>

#include "core/cuda_handles.hpp"
#include "cuda/workspace.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

struct Handle {
  std::mutex in_use;
  cublasHandle_t handle = nullptr;
};

/// Made at the first call for a GPU. Never destroyed: the driver may be gone before our statics.
Handle& handle_of(int index) {
  static auto* const handles = new std::map<int, Handle>;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  return (*handles)[index];
}

}  // namespace

BlasCall::BlasCall(Device device) {
  Handle& slot = handle_of(device.index);
  lock_ = std::unique_lock(slot.in_use);
  if (slot.handle == nullptr) {
    const cuda_backend::CurrentDevice current(device.index);
    check(cublasCreate(&slot.handle));
    // fp32 means fp32, and 16-bit products are added in fp32 to the end.
    check(cublasSetMathMode(
        slot.handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  }
  handle_ = slot.handle;
}

BlasCall::BlasCall(Device device, Stream stream, void* workspace) : BlasCall(device) {
  check(cublasSetStream(handle_, static_cast<cudaStream_t>(stream.handle)));
  // Setting a stream resets the workspace.
  check(cublasSetWorkspace(handle_, workspace, cuda::blas_workspace_bytes));
}

void BlasCall::check(cublasStatus_t status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::internal,
              std::string(cublasGetStatusString(status)), "cuBLAS");
}

}  // namespace tessera::ops
