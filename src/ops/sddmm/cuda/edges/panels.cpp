// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/panels.hpp"

#include <algorithm>
#include <vector>

#include "cuda/array.hpp"
#include "cuda/kept_with.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Where panels begin, and at last where the edges end.
std::vector<EdgeOffset> panel_bounds(const Graph& graph) {
  std::vector<EdgeOffset> bounds;
  VertexId row = 0;
  for (EdgeOffset begin = 0; begin < graph.num_edges();) {
    while (graph.row_offsets()[row + 1] <= begin) ++row;
    bounds.push_back(begin);
    begin = tiles::panel_end(graph, begin, row);
  }
  bounds.push_back(graph.num_edges());
  return bounds;
}

DevicePanels made(const Graph& graph, const Place& place) {
  const std::vector<EdgeOffset> bounds = panel_bounds(graph);
  Buffer<OrderedEdge> order(graph.num_edges());
  parallel_tasks(std::ssize(bounds) - 1, [&](std::int64_t panel) {
    const EdgeOffset begin = bounds[static_cast<std::size_t>(panel)];
    const EdgeOffset end = bounds[static_cast<std::size_t>(panel) + 1];
    for (EdgeOffset edge = begin; edge < end; ++edge) {
      order[edge] = {graph.col_indices()[edge], static_cast<std::uint32_t>(edge)};
    }
    std::sort(order.begin() + begin, order.begin() + end,
              [](const OrderedEdge& a, const OrderedEdge& b) {
                return a.source != b.source ? a.source < b.source : a.position < b.position;
              });
  });
  return {cuda::to_device(std::span<const OrderedEdge>(order.span()), place)};
}

}  // namespace

std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, const Place& place) {
  return cuda::kept_with<DevicePanels>(graph, "panels of sddmm", place,
                                       [&] { return made(graph, place); });
}

}  // namespace tessera::ops
