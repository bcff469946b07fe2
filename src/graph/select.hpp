// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// As `induced_subgraph`; that of a graph on a GPU is made in a place on the same one.
Graph induced_in(const Graph& graph, std::span<const VertexId> vertices, const Place& place);

}  // namespace tessera::detail
