// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tiles/cuda/device_tiles.hpp"
#include "tiles/sample.hpp"

namespace tessera::tiles {

/// Words of a column's set of rows.
constexpr int row_set_words(int height) { return (height + 31) / 32; }

/// Translates rows that lie on a GPU: the same bytes as `translate`, or as `translate_dense` where
/// columns of fewer than `min_uses` rows are left to a rest (without its offsets in this process).
///
/// A block takes a window. Its columns are marked in a bitmap in shared memory, which sorts them
/// and finds each only once; counting the bits before a column gives its place. How often a column
/// is used is counted in bitmaps too, one for each binary digit. Windows whose columns spread over
/// more than the bitmap holds take several rounds. How many columns the windows have decides how
/// large the tiles are: where `known` does not say it, the place's stream is waited for, once.
DeviceTiles translate_rows(const cuda::DeviceRows& rows, int height, const Place& place,
                           int min_uses = 1, const WindowCounts* known = nullptr,
                           WindowBits bits = WindowBits::tiles);

}  // namespace tessera::tiles
