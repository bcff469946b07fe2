// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

#include "tessera/core/device.hpp"

namespace tessera::app {

/// Makes a GPU ready while the caller reads data. What is wrong with it, its first work says.
[[nodiscard]] std::future<void> started_meanwhile(Device device);

}  // namespace tessera::app
