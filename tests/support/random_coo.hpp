// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"

namespace tessera::testing {

/// Matrix entries in no order.
struct Coo {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  std::vector<VertexId> rows;
  std::vector<VertexId> cols;
  std::vector<float> values;  ///< small integers over 4, so that sums are exact

  Graph build(const BuildOptions& options = {}, bool with_values = true) const {
    return from_coo(num_rows, num_cols, rows, cols,
                    with_values ? std::span<const float>(values) : std::span<const float>{},
                    options);
  }
};

/// `count` entries drawn uniformly, duplicates and self loops included; none if there is no room.
inline Coo random_coo(VertexId num_rows, VertexId num_cols, int count, std::uint64_t seed) {
  Coo coo{num_rows, num_cols, {}, {}, {}};
  if (num_rows == 0 || num_cols == 0) return coo;
  const Random random(seed);
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k) {
    coo.rows.push_back(
        static_cast<VertexId>(random.below(3 * k, static_cast<std::uint64_t>(num_rows))));
    coo.cols.push_back(
        static_cast<VertexId>(random.below(3 * k + 1, static_cast<std::uint64_t>(num_cols))));
    coo.values.push_back(static_cast<float>(random.below(3 * k + 2, 64)) / 4 - 4);
  }
  return coo;
}

/// The same entries without repetitions; the first of each stays.
inline Coo without_duplicates(const Coo& coo) {
  Coo unique{coo.num_rows, coo.num_cols, {}, {}, {}};
  std::map<std::pair<VertexId, VertexId>, bool> seen;
  for (std::size_t k = 0; k < coo.rows.size(); ++k) {
    if (!seen.emplace(std::pair{coo.rows[k], coo.cols[k]}, true).second) continue;
    unique.rows.push_back(coo.rows[k]);
    unique.cols.push_back(coo.cols[k]);
    unique.values.push_back(coo.values[k]);
  }
  return unique;
}

/// A random graph without duplicates; `with_values` decides whether it is weighted.
inline Graph random_graph(VertexId num_rows, VertexId num_cols, int count, std::uint64_t seed,
                          bool with_values = true, bool keep_edge_ids = false) {
  return without_duplicates(random_coo(num_rows, num_cols, count, seed))
      .build({.keep_edge_ids = keep_edge_ids}, with_values);
}

/// Every entry with its full weight.
inline std::map<std::pair<VertexId, VertexId>, float> entries_of(const Graph& graph) {
  std::map<std::pair<VertexId, VertexId>, float> entries;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      entries[{row, graph.col_indices()[k]}] = graph.weight(row, k);
    }
  }
  return entries;
}

/// Each edge {i, j} in both directions.
inline Graph undirected_graph(VertexId num_vertices,
                              const std::vector<std::pair<VertexId, VertexId>>& edges) {
  std::vector<VertexId> rows;
  std::vector<VertexId> cols;
  for (const auto& [i, j] : edges) {
    rows.insert(rows.end(), {i, j});
    cols.insert(cols.end(), {j, i});
  }
  return from_coo(num_vertices, num_vertices, rows, cols, {}, {.duplicates = Duplicates::first});
}

inline Graph path_graph(VertexId num_vertices) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId i = 0; i + 1 < num_vertices; ++i) edges.emplace_back(i, i + 1);
  return undirected_graph(num_vertices, edges);
}

inline Graph grid_graph(VertexId width, VertexId height) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId y = 0; y < height; ++y) {
    for (VertexId x = 0; x < width; ++x) {
      if (x + 1 < width) edges.emplace_back(y * width + x, y * width + x + 1);
      if (y + 1 < height) edges.emplace_back(y * width + x, (y + 1) * width + x);
    }
  }
  return undirected_graph(width * height, edges);
}

/// Vertex 0 in the middle.
inline Graph star_graph(VertexId leaves) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId leaf = 1; leaf <= leaves; ++leaf) edges.emplace_back(0, leaf);
  return undirected_graph(leaves + 1, edges);
}

/// Sets the number of threads for one scope.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) { set_num_threads(threads); }
  ~ThreadScope() { set_num_threads(0); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
};

}  // namespace tessera::testing
