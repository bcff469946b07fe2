// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/panels.hpp"

#include <algorithm>
#include <vector>

#include "cuda/array.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// The edges of the panel that begins at `begin`, of which `row` is the first row.
EdgeOffset panel_end(const Graph& graph, EdgeOffset begin, VertexId row) {
  const VertexId last = std::min<VertexId>(row + panel_rows, graph.num_rows());
  return std::min(graph.row_offsets()[last], begin + panel_edges);
}

/// Where panels begin, and at last where the edges end.
std::vector<EdgeOffset> panel_bounds(const Graph& graph) {
  std::vector<EdgeOffset> bounds;
  VertexId row = 0;
  for (EdgeOffset begin = 0; begin < graph.num_edges();) {
    while (graph.row_offsets()[row + 1] <= begin) ++row;
    bounds.push_back(begin);
    begin = panel_end(graph, begin, row);
  }
  bounds.push_back(graph.num_edges());
  return bounds;
}

std::shared_ptr<const DevicePanels> made(const Graph& graph, Device device) {
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
  auto panels = std::make_shared<DevicePanels>();
  panels->order = cuda::to_device(std::span<const OrderedEdge>(order.span()), device);
  return panels;
}

struct Reuse {
  double factor = 1;
};

Reuse measured_reuse(const Graph& graph) {
  constexpr VertexId samples = 16;
  std::int64_t edges = 0;
  std::int64_t distinct = 0;
  std::vector<VertexId> sources;
  for (VertexId i = 0; i < samples; ++i) {
    const auto row =
        static_cast<VertexId>(std::int64_t{graph.num_rows()} * (2 * i + 1) / (2 * samples));
    const EdgeOffset begin = graph.row_offsets()[row];
    const EdgeOffset end = panel_end(graph, begin, row);
    sources.assign(graph.col_indices().data() + begin, graph.col_indices().data() + end);
    std::sort(sources.begin(), sources.end());
    edges += end - begin;
    distinct += std::unique(sources.begin(), sources.end()) - sources.begin();
  }
  return {distinct > 0 ? static_cast<double>(edges) / static_cast<double>(distinct) : 1.0};
}

}  // namespace

std::shared_ptr<const DevicePanels> device_panels(const Graph& graph, Device device) {
  const auto make = [&]() -> std::shared_ptr<const void> { return made(graph, device); };
  return std::static_pointer_cast<const DevicePanels>(
      graph.derived("panels of sddmm on " + to_string(device), make));
}

double panel_reuse(const Graph& graph) {
  if (graph.num_rows() == 0) return 1;
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<Reuse>(measured_reuse(graph));
  };
  return std::static_pointer_cast<const Reuse>(graph.derived("reuse in panels of sddmm", make))
      ->factor;
}

}  // namespace tessera::ops
