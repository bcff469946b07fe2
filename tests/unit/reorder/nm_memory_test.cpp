// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/core/memory.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"

#include "support/counted_new.hpp"
#include "support/random_coo.hpp"

/// Orders for N:M take memory by the edges of a graph, not by its pairs of vertices: an adjacency
/// as bits, or counts for each row and group of columns, would take n * n / M of something.
namespace tessera {
namespace {

using reorder::NmAlgorithm;
using reorder::NmOptions;
using reorder::NmPattern;

Graph sparse_graph(VertexId size) {
  return without_self_loops(symmetrised(testing::random_graph(size, size, 3 * size, 7, false)));
}

/// Some vertices that a fifth of all others are neighbours of.
Graph graph_with_hubs(VertexId size) {
  constexpr VertexId hubs = 24;
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId hub = 0; hub < hubs; ++hub) {
    for (VertexId i = hubs + hub; i < size; i += 5) edges.emplace_back(hub, i);
  }
  return testing::undirected_graph(size, edges);
}

/// The most bytes that an order had of the heap beyond what was there before it.
std::int64_t bytes_of_order(const Graph& graph, const NmPattern& pattern, NmAlgorithm algorithm) {
  NmOptions options;
  options.algorithm = algorithm;
  options.effort = 0.1;
  const std::int64_t arrays_before = host_memory_use().current_bytes;
  const std::int64_t before = test::new_bytes();
  reset_host_memory_peak();
  test::forget_most_new_bytes();
  const reorder::NmOrder found = order_nm(graph, pattern, options);
  EXPECT_EQ(found.order.size(), graph.num_rows());
  return test::most_new_bytes() - before + host_memory_use().peak_bytes - arrays_before;
}

std::int64_t size_of(const Graph& graph) { return graph.num_rows() + graph.num_edges(); }

class NmMemory : public ::testing::TestWithParam<NmAlgorithm> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, NmMemory,
                         ::testing::Values(NmAlgorithm::group, NmAlgorithm::paper),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(NmMemory, FollowsTheEdges) {
  constexpr std::int64_t bytes_each = 128;
  for (const auto& make : {sparse_graph, graph_with_hubs}) {
    const Graph small = make(4000);
    const Graph large = make(16'000);
    for (const char* text : {"1:2:4", "1:2:32", "16:2:16", "32:2:32"}) {
      const NmPattern pattern = NmPattern::parse(text);
      const std::int64_t few = bytes_of_order(small, pattern, GetParam());
      const std::int64_t many = bytes_of_order(large, pattern, GetParam());
      EXPECT_LT(few, bytes_each * size_of(small)) << text;
      EXPECT_LT(many, bytes_each * size_of(large)) << text;
      // Tables have powers of two of places.
      const double edges =
          static_cast<double>(size_of(large)) / static_cast<double>(size_of(small));
      EXPECT_LT(static_cast<double>(many), 2 * edges * static_cast<double>(few)) << text;
    }
  }
}

}  // namespace
}  // namespace tessera
