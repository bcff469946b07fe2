// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::tiles {

/// Translates rows that lie on a GPU: the same bytes as `translate`.
///
/// A block takes a window. Its columns are marked in a bitmap in shared memory, which sorts them
/// and finds each only once; counting the bits before a column gives its place. Windows whose
/// columns spread over more than the bitmap holds take several rounds.
DeviceTiles translate_rows(const cuda::DeviceRows& rows, int height, Device device);

}  // namespace tessera::tiles
