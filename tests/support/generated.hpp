// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "support/random_coo.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/generate.hpp"

/// What every random graph model promises.
namespace tessera::testing {

inline EdgeOffset num_self_loops(const Graph& graph) {
  EdgeOffset loops = 0;
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    const auto sources = graph.neighbours(v);
    loops += std::binary_search(sources.begin(), sources.end(), v) ? 1 : 0;
  }
  return loops;
}

inline bool is_symmetric(const Graph& graph) {
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    for (const VertexId source : graph.neighbours(v)) {
      const auto back = graph.neighbours(source);
      if (!std::binary_search(back.begin(), back.end(), v)) return false;
    }
  }
  return true;
}

inline EdgeOffset max_degree(const Graph& graph) {
  EdgeOffset highest = 0;
  for (VertexId v = 0; v < graph.num_rows(); ++v) highest = std::max(highest, graph.degree(v));
  return highest;
}

/// Sorted, unique and in range, without loops or weights, of this shape.
inline void expect_simple(const Graph& graph, VertexId vertices, bool symmetric) {
  EXPECT_NO_THROW(graph.validate());
  EXPECT_EQ(graph.num_rows(), vertices);
  EXPECT_EQ(graph.num_cols(), vertices);
  EXPECT_EQ(num_self_loops(graph), 0);
  EXPECT_FALSE(graph.is_weighted());
  EXPECT_EQ(is_symmetric(graph), symmetric);
}

/// The same graph for any number of threads, another for another seed.
template <class Model>
void expect_seeded(Model model) {
  const auto graph_with = [&](int threads) {
    const ThreadScope scope(threads);
    return generate::build(model);
  };
  const Graph graph = graph_with(1);
  for (const int threads : {2, 3}) EXPECT_EQ(graph, graph_with(threads)) << threads << " threads";
  ++model.seed;
  EXPECT_NE(graph, graph_with(2));
}

template <class Model>
void expect_rejected(const Model& model) {
  try {
    generate::build(model);
    FAIL() << "not rejected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    EXPECT_FALSE(error.where().empty());
  }
}

}  // namespace tessera::testing
