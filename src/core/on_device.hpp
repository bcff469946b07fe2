// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"

#include "core/cuda_backend.hpp"

namespace tessera {

/// Makes the GPU of a plan current for as long as it lives: kernels start and handles
/// are made on the one that is. Costs a look where it already is, and nothing on the CPU.
class OnDevice {
 public:
  explicit OnDevice(Device device)
      : former_(device.kind == DeviceKind::cuda ? cuda_backend::make_current(device.index) : -1) {}
  ~OnDevice() {
    if (former_ >= 0) cuda_backend::make_current_again(former_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int former_;  ///< -1 where it was this one
};

}  // namespace tessera
