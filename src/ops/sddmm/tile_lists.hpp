// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ops/sddmm/dot_tile.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops {

/// The tiles of a graph, window after window, and the lists of their edges.
template <int height>
struct TileLists {
  Buffer<DotTile<height>> tiles;
  Buffer<std::uint32_t> codes;
};

/// For windows of 64 and 128 rows. The same bytes for any number of threads.
template <int height>
TileLists<height> make_tile_lists(const Graph& graph);

/// Why a graph has no such lists, in words; empty if it has.
std::string why_no_tile_lists(const Graph& graph, int height);

}  // namespace tessera::ops
