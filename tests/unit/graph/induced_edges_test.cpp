// SPDX-License-Identifier: Apache-2.0
#include "graph/induced_edges.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tessera/core/random.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera {
namespace {

/// Every edge has its own number as its weight, and some are there several times.
Graph numbered(VertexId vertices, std::uint64_t seed) {
  const Random random(seed);
  std::vector<VertexId> rows, cols;
  for (std::uint64_t k = 0; k < 6 * static_cast<std::uint64_t>(vertices); ++k) {
    const auto below = [&](std::uint64_t element) {
      return static_cast<VertexId>(random.below(element, static_cast<std::uint64_t>(vertices)));
    };
    rows.push_back(below(2 * k));
    cols.push_back(below(2 * k + 1));
  }
  const Graph graph =
      from_coo(vertices, vertices, rows, cols, {}, {.duplicates = Duplicates::keep});
  Buffer<float> numbers(graph.num_edges());
  for (EdgeOffset e = 0; e < numbers.size(); ++e) numbers[e] = static_cast<float>(e);
  return graph.with_values(std::move(numbers));
}

TEST(InducedEdges, AreThoseOfTheSubgraph) {
  for (const VertexId vertices : {0, 1, 2, 15, 16, 17, 33, 300}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << vertices << " vertices, seed " << seed);
      const Graph graph = numbered(vertices, seed);
      std::vector<VertexId> chosen(static_cast<std::size_t>(vertices));
      for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = static_cast<VertexId>(i);
      const Random random(seed + 10);
      for (std::size_t i = chosen.size(); i > 1; --i) {
        std::swap(chosen[i - 1], chosen[static_cast<std::size_t>(random.below(i, i))]);
      }
      for (const std::size_t count : {chosen.size(), chosen.size() / 2, std::size_t{0}}) {
        const std::span<const VertexId> some(chosen.data(), count);
        const std::vector<EdgeOffset> edges = detail::induced_edges(graph, some);
        const Graph part = induced_subgraph(graph, some);
        ASSERT_EQ(std::ssize(edges), part.num_edges());
        for (std::size_t k = 0; k < edges.size(); ++k) {
          EXPECT_EQ(static_cast<float>(edges[k]), part.values()[static_cast<EdgeOffset>(k)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
