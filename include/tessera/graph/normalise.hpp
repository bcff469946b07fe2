// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/graph.hpp"

namespace tessera {

/// GCN's D^-1/2 (A + I) D^-1/2, as PyG's `gcn_norm`: self loops are added where missing, d is the
/// weighted in-degree (row sum), and row and column are both scaled by d^-1/2, 0 where d <= 0.
/// The result has scales; it has values only where `graph` had. Square graphs only. Loops that are
/// added have the value `loop_weight`, as `with_self_loops` says.
Graph gcn_normalised(const Graph& graph, bool add_self_loops = true, float loop_weight = 1);

/// Mean aggregation: row i scaled by 1 / (its number of edges), 0 for an empty row.
Graph mean_normalised(const Graph& graph);

}  // namespace tessera
