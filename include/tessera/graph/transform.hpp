// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/graph/graph.hpp"

namespace tessera {

/// Adds A[i][i] = weight where row i has no self loop; existing loops keep their value. A weight
/// other than 1 needs a graph with values. Needs a square graph without scales. Edge ids stay those
/// of the original edges. Made where the graph lies.
Graph with_self_loops(const Graph& graph, float weight = 1);
/// Drops A[i][i]; edge ids of dropped edges become -1. Square graphs only.
Graph without_self_loops(const Graph& graph);

/// The pattern of A + A^T without values: each edge in both directions once. Self loops and edge
/// ids are kept. Square graphs only.
Graph symmetrised(const Graph& graph);

/// A^T, with values, scales and edge ids moved along.
Graph transposed(const Graph& graph);

/// Rows and columns `vertices[0], vertices[1], …` of A, in this order; each at most once. Scales
/// are those of the whole graph: normalise afterwards if the subgraph's own degrees are meant.
///
/// Made where the graph lies. On a GPU the work is queued on `stream`, in whose order the result is
/// made and released, and waited for once; without one, on the graph's own.
Graph induced_subgraph(const Graph& graph, std::span<const VertexId> vertices);
Graph induced_subgraph(const Graph& graph, std::span<const VertexId> vertices, Stream stream);

/// Rows `rows[0], rows[1], …` of A, in this order and as often as they are listed, with all
/// columns; without edge ids. The same holds for where and how.
Graph selected_rows(const Graph& graph, std::span<const VertexId> rows);
Graph selected_rows(const Graph& graph, std::span<const VertexId> rows, Stream stream);

/// The same graph with its arrays in a place, so that whatever is made of it is made there: the
/// graph itself where it lies on that device already.
Graph in_place(const Graph& graph, const Place& place);

}  // namespace tessera
