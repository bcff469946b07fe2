// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"

namespace tessera {

/// Makes a device ready for its first work. A GPU takes a tenth of a second and more for that, once
/// in a process, whoever comes first: a program that reads data before it computes can call this on
/// a thread of its own meanwhile. Throws what `require_available` throws.
void start(Device device);

}  // namespace tessera
