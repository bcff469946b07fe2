// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "tessera/data/dataset.hpp"
#include "tessera/graph/build.hpp"

/// What files say of their edges, a row for each: `edge_attr`, which become features, and others
/// that nothing uses, extra arrays such as `edge_type`.
namespace tessera::io {

bool has_arrays_of_edges(const Dataset& dataset, EdgeOffset edges);

/// Puts the rows of such arrays, one for each of `edges` that were listed, into the order of the
/// graph's edges, which is the one that is written. The graph has its edge ids. Of edges that were
/// merged the first row stays; where weights were summed, features that differ are an error.
/// `path` is where the features are from.
void sort_arrays_of_edges(const Graph& graph, EdgeOffset edges, Duplicates duplicates,
                          const std::string& path, Dataset& dataset);

/// The same for features whose edges are listed by their ends; -1 for one that was dropped.
void sort_edge_features(const Graph& graph, std::span<const VertexId> sources,
                        std::span<const VertexId> targets, Duplicates duplicates,
                        const std::string& path, EdgeFeatures& features);

}  // namespace tessera::io
