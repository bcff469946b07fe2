// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// Which edges of a graph in this process those of `induced_subgraph(graph, vertices)` are, in
/// their order there: repeated ones in the order that they have here.
std::vector<EdgeOffset> induced_edges(const Graph& graph, std::span<const VertexId> vertices);

}  // namespace tessera::detail
