// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/parallel.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {

/// Edges that have come to a data set with features of edges.
struct NewEdges {
  std::int64_t reversed = 0;  ///< have the features of the edge they are the reverse of
  std::int64_t zero = 0;      ///< have none but 0
};

/// Replaces the graph of a data set by what `change` makes of it, and moves the features of edges
/// along. `change` keeps edge ids, as all functions of graph/transform.hpp but `selected_rows` do.
NewEdges change_edges(Dataset& dataset, FunctionRef<Graph(const Graph& graph)> change);

}  // namespace tessera
