// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/core/measure.hpp"

namespace tessera {

/// A point in the queue of a stream, which this process can wait for, and its time. On the CPU work
/// is done when the call returns: the point is there at once.
class DeviceEvent {
 public:
  explicit DeviceEvent(Device device);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  void mark(Stream stream);
  /// Returns when all that was queued before the mark is done.
  void wait() const;
  /// Both were marked and waited for.
  double seconds_since(const DeviceEvent& earlier) const;

 private:
  Device device_;
  void* event_ = nullptr;     ///< of a GPU
  Stopwatch since_the_mark_;  ///< of the CPU
};

}  // namespace tessera
