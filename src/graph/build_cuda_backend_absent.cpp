// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device.hpp"
#include "tessera/core/error.hpp"

#include "graph/coo_access.hpp"
#include "graph/device_build.hpp"

namespace tessera::detail {
namespace {

[[noreturn]] void refuse(const Place& place) {
  require_available(place.device);
  throw Error(ErrorCode::internal, "work for a GPU in a build without", to_string(place.device));
}

}  // namespace

Graph build_on_device(const EdgeInput&, const BuildOptions& options, const EdgeWork&) {
  refuse(options.place());
}
void know_columns_on_device(const Graph& graph) { refuse(graph.place()); }
SharedArray<VertexId> narrowed_on_device(std::span<const std::int64_t>, std::int64_t, const char*,
                                         const Place& place) {
  refuse(place);
}
Graph borrow_on_device(VertexId, VertexId, const BorrowedCsr&, const BorrowOptions& options) {
  refuse(options.place());
}
Graph gcn_normalised_on_device(const Graph& graph, bool, float) { refuse(graph.place()); }
Graph with_self_loops_on_device(const Graph& graph, float) { refuse(graph.place()); }
std::optional<Graph> induced_on_device(const Graph&, std::span<const VertexId>,
                                       const Place& place) {
  refuse(place);
}
Graph selected_rows_on_device(const Graph& graph, std::span<const VertexId>, Stream) {
  refuse(graph.place());
}
Graph in_place_on_device(const Graph&, const Place& place) { refuse(place); }
Graph circulant_on_device(VertexId, VertexId, VertexId, const Place& place) { refuse(place); }

void check_range_on_device(VertexId, VertexId, std::span<const VertexId>, std::span<const VertexId>,
                           const Place& place) {
  refuse(place);
}
Buffer<float> weighed_on_device(const Coo& coo) { refuse(coo.place()); }
PlacedArray<VertexId> placed_on_device(SharedArray<VertexId>, const Place& place) { refuse(place); }
PlacedArray<float> placed_on_device(SharedArray<float>, const Place& place) { refuse(place); }

}  // namespace tessera::detail
