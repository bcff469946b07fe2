// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/catalogue.hpp"
#include "tessera/core/progress.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {

struct PartitionOptions {
  std::int32_t parts = 2;
  /// "multilevel" (built in: splits a coarser graph, and moves vertices on the way back), "metis",
  /// "contiguous" (ranges of ids), or "auto" (multilevel).
  std::string method = "auto";
  /// A part may be this much larger than the mean.
  double imbalance = 0.05;
  std::uint64_t seed = 1;
  Progress progress = {};
};

struct Partition {
  std::int32_t parts = 0;
  std::vector<std::int32_t> assignment;  ///< part of each vertex
  std::string method;                    ///< the method that ran; never "auto"

  /// Throws `bad_data` unless there is one part in range for each of `num_vertices`.
  void validate(VertexId num_vertices) const;
};

/// How good a partition is on a graph.
struct PartitionQuality {
  EdgeOffset cut_edges = 0;  ///< entries whose two ends lie in different parts, loops never
  double cut_share = 0;      ///< of all entries
  VertexId smallest = 0;
  VertexId largest = 0;
  double imbalance = 0;  ///< largest / mean - 1
};

bool built_with_metis() noexcept;

/// What `partition` knows by name.
std::vector<CatalogueEntry> partition_methods();

/// Splits the vertices of a square graph into balanced parts with few edges between them. Direction
/// is ignored. Every part has a vertex: more parts than vertices are an error, unless there are no
/// vertices at all. `metis` without METIS is a `backend_unavailable` error.
Partition partition(const Graph& graph, const PartitionOptions& options);

PartitionQuality assess(const Graph& graph, const Partition& partition);

/// The vertices of each part, in increasing order.
std::vector<std::vector<VertexId>> members(const Partition& partition);

}  // namespace tessera
