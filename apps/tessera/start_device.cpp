// SPDX-License-Identifier: Apache-2.0
#include "start_device.hpp"

#include <system_error>

#include "tessera/core/error.hpp"
#include "tessera/core/start.hpp"

namespace tessera::app {

std::future<void> started_meanwhile(Device device) {
  if (device.kind == DeviceKind::cpu) return {};
  try {
    return std::async(std::launch::async, [device] {
      try {
        start(device);
      } catch (const Error&) {
        // The first use of the device reports it.
      }
    });
  } catch (const std::system_error&) {
    return {};  // without a further thread it starts at its first use
  }
}

}  // namespace tessera::app
