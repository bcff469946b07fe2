// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/graph/partition.hpp"

namespace tessera::app {

/// Line i holds the part of vertex i. `parts` of 0: the highest part says how many there are.
Partition read_partition_file(const std::string& path, VertexId vertices, std::int32_t parts = 0);

}  // namespace tessera::app
