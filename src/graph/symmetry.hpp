// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/graph.hpp"

namespace tessera::detail {

/// What a square graph and its transpose have in common.
struct Symmetry {
  EdgeOffset loops = 0;
  EdgeOffset one_way = 0;    ///< edges (i, j) without an edge (j, i)
  bool same_weights = true;  ///< every edge (i, j) with a twin (j, i) has its weight

  bool of_pattern() const { return one_way == 0; }
  bool of_values() const { return one_way == 0 && same_weights; }
};

/// Finds each edge's twin by bisection, so the transpose is not needed.
Symmetry symmetry_of(const Graph& graph);

/// A pattern in which every edge goes both ways: the graph itself where it is symmetric already.
/// May contain self loops.
Graph undirected(const Graph& graph);

}  // namespace tessera::detail
