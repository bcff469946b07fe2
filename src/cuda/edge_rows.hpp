// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/graph/graph.hpp"

namespace tessera::cuda {

/// The targets of 32 consecutive edges. Rows that have edges are numbered; bit k of `starts` says
/// that edge k belongs to the next of them, not to that of edge k - 1.
struct EdgeTile {
  VertexId first = 0;  ///< the number of edge 0's row
  std::uint32_t starts = 0;
};

inline constexpr int edges_per_tile = 32;

/// What a kernel needs to find the target of any edge: a quarter of a byte an edge.
struct EdgeRows {
  const EdgeTile* tiles = nullptr;
  const VertexId* rows = nullptr;  ///< by number; null where every row has edges
};

struct DeviceEdgeRows {
  Buffer<EdgeTile> tiles;
  Buffer<VertexId> rows;

  EdgeRows view() const noexcept { return {tiles.data(), rows.data()}; }
};

/// Made at the first call for a place's memory, then kept with the graph.
std::shared_ptr<const DeviceEdgeRows> device_edge_rows(const Graph& graph, const Place& place);

}  // namespace tessera::cuda
