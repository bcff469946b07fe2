// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "support/random_coo.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/graph/transform.hpp"

/// Graphs on which kernels tend to break, each with every kind of weight.
namespace tessera::testing {

struct NamedGraph {
  std::string name;
  Graph graph;
};

enum class NumberKind {
  normal,   ///< any fp32 number, both signs
  integer,  ///< small integers (scales: powers of two), so that results are exact
};

/// One number per element of `count`.
inline SharedArray<float> random_values(std::int64_t count, NumberKind kind, std::uint64_t seed) {
  const Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = kind == NumberKind::normal ? static_cast<float>(random.normal(i))
                                           : static_cast<float>(random.below(i, 7)) - 3;
  }
  return SharedArray<float>(std::move(values));
}

/// Powers of two from 1/2 to 4 for `integer`.
inline SharedArray<float> random_scales(std::int64_t count, NumberKind kind, std::uint64_t seed) {
  if (kind == NumberKind::normal) return random_values(count, kind, seed);
  const Random random(seed);
  std::vector<float> scales(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] = 0.5f * static_cast<float>(1 << random.below(i, 4));
  }
  return SharedArray<float>(std::move(scales));
}

/// Row 0 has every column, the other rows a few.
inline Graph hub_graph(VertexId num_rows, VertexId num_cols, std::uint64_t seed) {
  Coo coo = random_coo(num_rows, num_cols, 3 * num_rows, seed);
  for (VertexId col = 0; col < num_cols; ++col) {
    coo.rows.push_back(0);
    coo.cols.push_back(col);
    coo.values.push_back(1);
  }
  return without_duplicates(coo).build({}, false);
}

/// Patterns: 0 to 33 vertices, empty rows, long rows and columns, directed, rectangular, loops.
inline std::vector<NamedGraph> odd_patterns() {
  std::vector<NamedGraph> graphs;
  for (const VertexId n : {0, 1, 15, 16, 17, 31, 33}) {
    graphs.push_back({"square " + std::to_string(n), random_graph(n, n, 5 * n, 11, false)});
  }
  graphs.push_back({"no edges", random_graph(9, 7, 0, 12, false)});
  graphs.push_back({"mostly empty rows", random_graph(90, 90, 40, 13, false)});
  graphs.push_back({"wide", random_graph(17, 61, 200, 14, false)});
  graphs.push_back({"tall", random_graph(61, 17, 200, 15, false)});
  graphs.push_back({"hub row", hub_graph(5, 4500, 16)});
  graphs.push_back({"hub column", transposed(hub_graph(5, 4500, 17))});
  return graphs;
}

/// The graph as it is, with values, with scales, and with both.
inline std::vector<NamedGraph> with_all_weights(const NamedGraph& pattern, NumberKind kind) {
  const Graph& graph = pattern.graph;
  const Graph valued = graph.with_values(random_values(graph.num_edges(), kind, 21));
  const auto scaled = [&](const Graph& base) {
    return base.with_scales(random_scales(graph.num_rows(), kind, 22),
                            random_scales(graph.num_cols(), kind, 23));
  };
  return {{pattern.name + ", pattern", graph},
          {pattern.name + ", values", valued},
          {pattern.name + ", scales", scaled(graph)},
          {pattern.name + ", values and scales", scaled(valued)}};
}

}  // namespace tessera::testing
