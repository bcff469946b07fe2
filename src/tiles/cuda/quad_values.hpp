// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tiles/cuda/device_quads.hpp"

namespace tessera::tiles {

struct DeviceQuadValues {
  Buffer<std::int32_t> edges;  ///< as `place_quad_values` places them
};

/// For windows of that height with all columns; made at the first call for a side and a place's
/// memory, then kept with the graph.
std::shared_ptr<const DeviceQuadValues> device_quad_values(const Graph& graph, int height,
                                                           Side side, const Place& place);

}  // namespace tessera::tiles
