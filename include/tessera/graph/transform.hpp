// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/graph/graph.hpp"

namespace tessera {

/// Adds A[i][i] = 1 where row i has no self loop; existing loops keep their value. Needs a square
/// graph without scales. Edge ids stay those of the original edges.
Graph with_self_loops(const Graph& graph);
/// Drops A[i][i]; edge ids of dropped edges become -1. Square graphs only.
Graph without_self_loops(const Graph& graph);

/// The pattern of A + A^T without values: each edge in both directions once. Self loops and edge
/// ids are kept. Square graphs only.
Graph symmetrised(const Graph& graph);

/// A^T, with values, scales and edge ids moved along.
Graph transposed(const Graph& graph);

/// Rows and columns `vertices[0], vertices[1], …` of A, in this order; each at most once. Scales
/// are those of the whole graph: normalise afterwards if the subgraph's own degrees are meant.
Graph induced_subgraph(const Graph& graph, std::span<const VertexId> vertices);

}  // namespace tessera
