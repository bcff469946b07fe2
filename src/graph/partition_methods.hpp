// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/progress.hpp"
#include "tessera/graph/graph.hpp"

/// The ways to split vertices, one per file. All get a graph in which every edge goes both ways,
/// and at most as many parts as vertices, at least one of each.
namespace tessera::detail {

using Assignment = std::vector<std::int32_t>;

struct PartitionTask {
  const Graph& graph;
  std::int32_t parts;
  VertexId largest;  ///< vertices that a part may hold; enough for all vertices together
  double imbalance;
  std::uint64_t seed;
  const Progress& progress;
};

/// Where part `part` of `parts` nearly equal ranges begins.
VertexId range_begin(VertexId num_vertices, std::int32_t parts, std::int32_t part);

Assignment partition_contiguous(const PartitionTask& task);

/// Grows one part after the other breadth-first until it is full, then refines.
Assignment partition_grow(const PartitionTask& task);

/// METIS_PartGraphKway, repaired where METIS leaves parts empty or too large (it does so on small
/// or very dense graphs).
Assignment partition_metis(const PartitionTask& task);

/// True when METIS can hold this graph in its index type.
bool fits_metis(const Graph& graph);

/// Moves boundary vertices to the part where most of their neighbours are, while sizes allow.
void refine(const PartitionTask& task, Assignment& assignment);

/// Moves as few vertices as needed until no part is empty or larger than allowed. Returns whether
/// any moved.
bool rebalance(const PartitionTask& task, Assignment& assignment);

}  // namespace tessera::detail
