// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tessera/core/device.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera {

/// Work that a GPU was given once, kept to be given again as a whole: a CUDA graph. A replay does
/// the same on the same memory, so what is to change between replays must lie in memory that the
/// recorded work reads.
class Recording {
 public:
  Recording() = default;

  /// Calls `work` once with a stream of its own, and keeps what it queues there instead of running
  /// it. Memory that the work uses must live as long as the recording. Throws `unsupported`, saying
  /// why, where the device cannot record or the work waits for the GPU or reads from it.
  static Recording of(Device device, FunctionRef<void(Stream)> work);

  bool empty() const noexcept { return work_ == nullptr; }
  /// How many kernels, copies and fills it has.
  std::int64_t num_launches() const;
  /// Queues the work once more.
  void replay(Stream stream = {}) const;

 private:
  Recording(Device device, std::shared_ptr<const void> work)
      : device_(device), work_(std::move(work)) {}

  Device device_;
  std::shared_ptr<const void> work_;
};

/// Whether this thread is inside `Recording::of`: then no plan can be made and no buffer can grow.
bool is_recording() noexcept;

/// Why work on this device cannot be recorded, in words; empty where it can.
std::string why_not_recorded(Device device);

}  // namespace tessera
