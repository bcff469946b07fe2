// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "tessera/graph/graph.hpp"

namespace tessera {

/// What `info` reports. "Degree" is the number of sources of a target (the length of its row).
struct GraphStats {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  EdgeOffset num_edges = 0;
  EdgeOffset num_self_loops = 0;
  /// Edges of A + A^T off the diagonal; -1 for a rectangular graph.
  EdgeOffset edges_symmetrised_loop_free = 0;
  EdgeOffset min_degree = 0;
  EdgeOffset max_degree = 0;
  double mean_degree = 0;
  double median_degree = 0;
  /// Vertices without any edge, in or out; a self loop counts as an edge.
  VertexId num_isolated = 0;
  VertexId num_empty_rows = 0;
  /// Weakly connected components; rows and columns of a rectangular graph are different vertices.
  VertexId num_components = 0;
  VertexId largest_component = 0;
  bool symmetric_pattern = false;
  bool symmetric_values = false;
  /// max |i - j| over edges.
  VertexId bandwidth = 0;
  /// degree_histogram[k] counts rows of degree in [2^(k-1), 2^k); [0] counts empty rows.
  std::vector<std::int64_t> degree_histogram;
};

GraphStats compute_stats(const Graph& graph);

/// Component number of every row vertex, then (if rectangular) of every column vertex; numbered in
/// the order of their lowest vertex.
std::vector<VertexId> connected_components(const Graph& graph);

std::ostream& operator<<(std::ostream& out, const GraphStats& stats);

}  // namespace tessera
