// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tiles/cuda/device_quads.hpp"

namespace tessera::tiles {

/// Puts the columns of windows, translated as row sets, into quads: the same bytes as
/// `translate_quads`. A warp takes a segment of a window, each lane an open quad. How many quads
/// there are decides how large the tiles are: the place's stream is waited for, once.
DeviceQuads arrange_quads(const DeviceTiles& sets, const Place& place);

}  // namespace tessera::tiles
