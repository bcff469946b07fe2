// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublas_v2.h>

#include <mutex>

#include "tessera/core/device.hpp"

namespace tessera::ops {

/// cuBLAS for the length of one call: the GPU's one handle, set to the caller's stream and
/// workspace, so that the call neither allocates nor waits and gives the same bits whatever runs on
/// other streams.
class BlasCall {
 public:
  explicit BlasCall(Device device);
  BlasCall(Device device, Stream stream, void* workspace);
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

  cublasHandle_t handle() const noexcept { return handle_; }
  /// Throws unless a call succeeded.
  void check(cublasStatus_t status) const;

 private:
  std::unique_lock<std::mutex> lock_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace tessera::ops
