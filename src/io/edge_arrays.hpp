// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/data/dataset.hpp"

/// What files say of their edges and nothing uses: `edge_attr`, `edge_type` and the like, extra
/// arrays with a row per edge.
namespace tessera::io {

bool has_arrays_of_edges(const Dataset& dataset, EdgeOffset edges);

/// Puts the rows of such arrays, one for each of `edges` that were listed, into the order of the
/// graph's edges, which is the one that is written. The graph has its edge ids. Of edges that were
/// merged the first row stays.
void sort_arrays_of_edges(const Graph& graph, EdgeOffset edges, Dataset& dataset);

}  // namespace tessera::io
