// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device.hpp"

#include "graph/device_build.hpp"

namespace tessera::detail {

Graph build_on_device(const EdgeInput&, const BuildOptions& options, const EdgeWork&) {
  require_available(options.device);
  return {};
}

void know_columns_on_device(const Graph& graph) { require_available(graph.device()); }

SharedArray<VertexId> narrowed_on_device(std::span<const std::int64_t>, std::int64_t, const char*,
                                         const Place& place) {
  require_available(place.device);
  return {};
}

Graph borrow_on_device(VertexId, VertexId, const BorrowedCsr&, const BorrowOptions& options) {
  require_available(options.device);
  return {};
}

Graph gcn_normalised_on_device(const Graph& graph, bool, float) {
  require_available(graph.device());
  return {};
}

Graph with_self_loops_on_device(const Graph& graph, float) {
  require_available(graph.device());
  return {};
}

std::optional<Graph> induced_on_device(const Graph& graph, std::span<const VertexId>,
                                       const Place&) {
  require_available(graph.device());
  return {};
}

Graph selected_rows_on_device(const Graph& graph, std::span<const VertexId>, Stream) {
  require_available(graph.device());
  return {};
}

Graph in_place_on_device(const Graph&, const Place& place) {
  require_available(place.device);
  return {};
}

Graph circulant_on_device(VertexId, VertexId, VertexId, const Place& place) {
  require_available(place.device);
  return {};
}

}  // namespace tessera::detail
