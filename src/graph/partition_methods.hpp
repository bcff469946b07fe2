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

/// Splits a coarser graph, and moves vertices on the way back.
Assignment partition_multilevel(const PartitionTask& task);

/// METIS_PartGraphKway, repaired where METIS leaves parts empty or too large (it does so on small
/// or very dense graphs).
Assignment partition_metis(const PartitionTask& task);

/// Moves vertices until no part is empty or larger than allowed.
void repair(const PartitionTask& task, Assignment& assignment);

}  // namespace tessera::detail
