// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/device_rates.hpp"

namespace tessera {

/// While one lives, the GPUs that this thread asks costs about are one that need not be there.
/// Kernels can be chosen for it, and nothing prepared or run.
class AbsentGpu {
 public:
  explicit AbsentGpu(DeviceProfile profile)
      : profile_(std::move(profile)), traits_(traits_of(profile_)), before_(current_) {
    current_ = this;
  }
  ~AbsentGpu() { current_ = before_; }
  AbsentGpu(const AbsentGpu&) = delete;
  AbsentGpu& operator=(const AbsentGpu&) = delete;

  /// Null where this thread plans for GPUs that are there.
  static const AbsentGpu* current() noexcept { return current_; }

  const DeviceProfile& profile() const noexcept { return profile_; }
  const DeviceTraits& traits() const noexcept { return traits_; }

 private:
  static thread_local const AbsentGpu* current_;

  DeviceProfile profile_;
  DeviceTraits traits_;
  const AbsentGpu* before_;
};

}  // namespace tessera
