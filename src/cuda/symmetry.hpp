// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::cuda {

/// Whether every edge (i, j) of a square graph has a twin (j, i), found on a GPU by the first who
/// asks, who waits for it; then known of the graph.
bool is_symmetric(const Graph& graph, const Place& place);

}  // namespace tessera::cuda
