// SPDX-License-Identifier: Apache-2.0
#include "cuda/edge_rows.hpp"

#include <vector>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"

namespace tessera::cuda {
namespace {

DeviceEdgeRows made(const Graph& graph, const Place& place) {
  const EdgeOffset num_tiles = (graph.num_edges() + edges_per_tile - 1) / edges_per_tile;
  std::vector<EdgeTile> tiles(static_cast<std::size_t>(num_tiles));
  std::vector<VertexId> rows;
  rows.reserve(static_cast<std::size_t>(graph.num_rows()));
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    const EdgeOffset begin = graph.row_offsets()[row];
    const EdgeOffset end = graph.row_offsets()[row + 1];
    if (begin == end) continue;
    if (begin % edges_per_tile != 0) {
      tiles[static_cast<std::size_t>(begin / edges_per_tile)].starts |= std::uint32_t{1}
                                                                        << (begin % edges_per_tile);
    }
    const EdgeOffset first_tile = (begin + edges_per_tile - 1) / edges_per_tile;
    for (EdgeOffset tile = first_tile; tile * edges_per_tile < end; ++tile) {
      tiles[static_cast<std::size_t>(tile)].first = static_cast<VertexId>(rows.size());
    }
    rows.push_back(row);
  }
  DeviceEdgeRows result;
  result.tiles = to_device(tiles, place);
  if (std::ssize(rows) != graph.num_rows()) {
    result.rows = to_device(rows, place);
  }
  return result;
}

}  // namespace

std::shared_ptr<const DeviceEdgeRows> device_edge_rows(const Graph& graph, const Place& place) {
  return kept_with<DeviceEdgeRows>(graph, "rows of edges", place,
                                   [&] { return made(graph, place); });
}

}  // namespace tessera::cuda
