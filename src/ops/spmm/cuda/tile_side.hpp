// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/spmm/kernel.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

/// What a pass multiplies by: A forward, A^T backward.
inline tiles::Side tile_side(SpmmPass pass) {
  return pass == SpmmPass::forward ? tiles::Side::forward : tiles::Side::transposed;
}

}  // namespace tessera::ops
