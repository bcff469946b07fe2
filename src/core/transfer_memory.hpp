// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/memory.hpp"

namespace tessera {

/// Memory of this process that a device copies to and from while the process goes on: page-locked,
/// for small things that live long. `host_memory()` for the CPU.
MemoryResource& transfer_memory(Device device);

}  // namespace tessera
