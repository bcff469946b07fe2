// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/start.hpp"

#include "tessera/core/memory.hpp"

namespace tessera {

void start(Device device) {
  require_available(device);
  if (device.kind == DeviceKind::cpu) return;
  // An empty pool: a caller with a memory resource of its own wants no allocation beside it.
  default_memory(device);
  synchronise(device);
}

}  // namespace tessera
