// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera {

/// Vertices are numbered with 32 bits: half the traffic of 64, and enough for 2^31 - 1 of them.
using VertexId = std::int32_t;

/// Edges are counted with 64 bits, and so is every address computed from rows and features.
using EdgeOffset = std::int64_t;

}  // namespace tessera
