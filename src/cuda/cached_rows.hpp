// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cuda/rows.hpp"

namespace tessera::cuda {

/// What `device_rows` and `device_columns` have made of a graph before; null if they have not.
std::shared_ptr<const DeviceRows> cached_rows(const Graph& graph, const Place& place);
std::shared_ptr<const DeviceRows> cached_columns(const Graph& graph, const Place& place);

}  // namespace tessera::cuda
