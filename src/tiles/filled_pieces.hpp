// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tiles/pieces.hpp"

namespace tessera::tiles {

/// As `make_pieces`, for kernels to which adding up pieces is cheap: any window of more than
/// `min_cut_steps` is cut where its worker would be busy longer than others, and goes on with
/// another, so that all are done at about the same time however few windows there are. There is no
/// longest piece. Where a worker's share is less than `min_cut_steps`, it is `make_pieces`.
///
///     worker     0             1             2             3
///                window 0 ...  0, 1 .......  1, 2 .......  2, 3, 4
PieceSchedule make_filled_pieces(const WindowSteps& windows, const PieceOptions& options);

}  // namespace tessera::tiles
