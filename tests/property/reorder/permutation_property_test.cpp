// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/permutation.hpp"

#include <gtest/gtest.h>

#include "tessera/reorder/orders.hpp"

#include "support/random_coo.hpp"

namespace tessera {
namespace {

using testing::ThreadScope;

TEST(PermutationProperty, TheInverseUndoesEverything) {
  for (const VertexId size : {0, 1, 15, 16, 17, 31, 33, 1000}) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      SCOPED_TRACE(::testing::Message() << size << " vertices, seed " << seed);
      const Graph graph = testing::random_graph(size, size, 5 * size, seed, seed != 2, seed != 3);
      const Permutation order = Permutation::random(size, seed);
      const Graph moved = permuted(graph, order);
      moved.validate();
      EXPECT_EQ(permuted(moved, order.inverse()), graph);
      EXPECT_EQ(permuted(graph, order.then(order)), permuted(moved, order));
      const auto entries = testing::entries_of(graph);
      for (const auto& [place, weight] : testing::entries_of(moved)) {
        const std::pair old{order.new_to_old()[place.first], order.new_to_old()[place.second]};
        ASSERT_EQ(entries.at(old), weight);
      }
    }
  }
}

TEST(PermutationProperty, OrdersDoNotDependOnThreads) {
  const Graph graph = testing::random_graph(3000, 3000, 9000, 8);
  for (const CatalogueEntry& method : reorder::methods()) {
    const Permutation order = reorder::compute(method.name, graph);
    const Graph moved = permuted(graph, order);
    for (const int threads : {1, 2, 3, 4}) {
      SCOPED_TRACE(::testing::Message() << method.name << ", " << threads << " threads, seed 8");
      const ThreadScope scope(threads);
      EXPECT_EQ(reorder::compute(method.name, graph), order);
      EXPECT_EQ(permuted(graph, order), moved);
    }
  }
}

}  // namespace
}  // namespace tessera
