// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/memory.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::cuda {

/// Whether every edge (i, j) of a square graph has a twin (j, i), found on a GPU by the first who
/// asks, who waits for it; then known of the graph.
bool is_symmetric(const Graph& graph, const Place& place);

/// Says so of a graph from now on.
void know_symmetry(const Graph& graph, bool symmetric);

/// Whether it has been found that every edge has a twin; false where nobody has looked.
bool is_known_symmetric(const Graph& graph);

}  // namespace tessera::cuda
