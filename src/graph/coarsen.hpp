// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "graph/weighted_graph.hpp"

namespace tessera::detail {

/// Groups tightly connected vertices, none heavier than `heaviest` together: the cluster of each
/// vertex, numbered from 0 in the order of their first members. Size-constrained label propagation
/// (Meyerhenke, Sanders, Schulz 2014), with what stays alone paired by its favourite neighbour.
/// The same for any number of threads.
std::vector<VertexId> clusters_of(const WeightedGraph& graph, std::int64_t heaviest,
                                  std::uint64_t seed);

/// The graph with a vertex for each cluster; edges between two clusters become one.
WeightedGraph contracted(const WeightedGraph& graph, const std::vector<VertexId>& cluster_of);

/// The vertices of each group, in increasing order: those of group g stand from `begins[g]` on.
struct Grouped {
  std::vector<VertexId> begins;  ///< one more than there are groups
  std::vector<VertexId> vertices;
};
Grouped grouped_by(const std::vector<std::int32_t>& group_of, std::int32_t groups);

}  // namespace tessera::detail
