// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"

namespace tessera {

/// A stream of its own on a device, which does not wait for others. The CPU has none.
class SideStream {
 public:
  /// `goes_first`: what is queued on it begins as soon as there is room, before what others wait
  /// to begin.
  explicit SideStream(Device device, bool goes_first = false);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  operator Stream() const noexcept { return {handle_}; }

 private:
  Device device_;
  void* handle_ = nullptr;
};

}  // namespace tessera
