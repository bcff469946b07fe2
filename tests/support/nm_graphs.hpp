// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "support/random_coo.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"

/// Graphs for orders of N:M patterns, and what violates a pattern, counted by hand.
namespace tessera::test {

/// Every meta-block looked at by itself.
inline reorder::NmViolations violations_by_hand(const Graph& graph,
                                                const reorder::NmPattern& pattern) {
  reorder::NmViolations found;
  for (VertexId top = 0; top < graph.num_rows(); top += pattern.v) {
    for (VertexId left = 0; left < graph.num_cols(); left += pattern.m) {
      std::set<VertexId> live;
      bool bad = false;
      for (VertexId row = top; row < std::min(top + pattern.v, graph.num_rows()); ++row) {
        int entries = 0;
        for (const VertexId column : graph.neighbours(row)) {
          if (column < left || column >= left + pattern.m) continue;
          ++entries;
          live.insert(column);
        }
        if (entries > pattern.n) {
          ++found.vectors;
          bad = true;
        }
      }
      if (bad || live.size() > 4) ++found.meta_blocks;
    }
  }
  return found;
}

inline Graph random_undirected(VertexId size, int edges, std::uint64_t seed) {
  return without_self_loops(symmetrised(testing::random_graph(size, size, edges, seed, false)));
}

/// A ring in which every vertex has its `reach` nearest ones on both sides as neighbours.
inline Graph band_around(VertexId size, VertexId reach) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId i = 0; i < size; ++i) {
    for (VertexId step = 1; step <= reach; ++step) edges.emplace_back(i, (i + step) % size);
  }
  return testing::undirected_graph(size, edges);
}

inline Graph star(VertexId leaves) {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId leaf = 1; leaf <= leaves; ++leaf) edges.emplace_back(0, leaf);
  return testing::undirected_graph(leaves + 1, edges);
}

}  // namespace tessera::test
