// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/device_traits.hpp"
#include "ops/sddmm/cuda/panels/launch.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops {

/// How many pieces the panels of a graph should have: as many as the blocks that a GPU holds at
/// once, or several times as many. Every piece asks for all rows of its panel, so that there should
/// not be more than it takes to keep all processors busy to the end.
std::int64_t wanted_pieces(const Graph& graph, int rows, const DeviceTraits& traits);

/// Panels of so many rows, those with most edges cut, so that no piece has more edges than it must
/// for that many pieces. The largest come first.
std::vector<PanelPiece> cut_panels(const Graph& graph, int rows, std::int64_t most_pieces);

/// The edges of the longest panel.
EdgeOffset longest_panel(const Graph& graph, int rows);

}  // namespace tessera::ops
