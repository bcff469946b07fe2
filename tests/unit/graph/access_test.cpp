// SPDX-License-Identifier: Apache-2.0
#include "graph/access.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/degrees.hpp"
#include "graph/weight_sizes.hpp"
#include "tessera/graph/build.hpp"

namespace tessera::detail {
namespace {

Graph some_graph() {
  const std::vector<VertexId> sources = {1, 2, 2, 0}, targets = {0, 0, 1, 2};
  return from_edges(4, sources, targets);
}

std::shared_ptr<const void> number(int value) { return std::make_shared<int>(value); }

int int_of(const std::shared_ptr<const void>& kept) {
  return *std::static_pointer_cast<const int>(kept);
}

TEST(GraphAccess, MakesOnceAndKeepsForAllCopies) {
  const Graph graph = some_graph();
  const Graph copy = graph.with_scales({}, {});
  EXPECT_EQ(GraphAccess::known(graph, "a"), nullptr);
  EXPECT_EQ(int_of(GraphAccess::derived(graph, "a", [] { return number(1); })), 1);
  EXPECT_EQ(int_of(GraphAccess::derived(copy, "a", [] { return number(2); })), 1);
  EXPECT_EQ(int_of(GraphAccess::known(copy, "a")), 1);
}

TEST(GraphAccess, LetsGoOfWhatIsKeptForUsersWhenItHasNone) {
  const Graph graph = some_graph();
  GraphAccess::derived(graph, "for good", [] { return number(1); });
  GraphAccess::derived(
      graph, "unused", [] { return number(2); }, Keeping::for_users);
  auto user = GraphAccess::derived(
      graph, "used", [] { return number(3); }, Keeping::for_users);
  GraphAccess::release_unused(graph);
  EXPECT_NE(GraphAccess::known(graph, "for good"), nullptr);
  EXPECT_EQ(GraphAccess::known(graph, "unused"), nullptr);
  EXPECT_EQ(int_of(GraphAccess::known(graph, "used")), 3);
  user.reset();
  GraphAccess::release_unused(graph);
  EXPECT_EQ(GraphAccess::known(graph, "used"), nullptr);
}

TEST(GraphAccess, LetsGoOfWhatOnlyTheUnusedUsed) {
  const Graph graph = some_graph();
  for (const char* const order : {"ab", "ba"}) {  // whichever comes first among all that is kept
    const std::string user{order[0]}, used{order[1]};
    GraphAccess::derived(
        graph, user,
        [&]() -> std::shared_ptr<const void> {
          return std::make_shared<std::shared_ptr<const void>>(GraphAccess::derived(
              graph, used, [] { return number(1); }, Keeping::for_users));
        },
        Keeping::for_users);
    GraphAccess::release_unused(graph);
    EXPECT_EQ(GraphAccess::known(graph, user), nullptr);
    EXPECT_EQ(GraphAccess::known(graph, used), nullptr);
  }
}

TEST(GraphAccess, ColumnOffsetsAreThoseOfTheCscOrWhatIsKnownOfThem) {
  const Graph graph = some_graph();
  EXPECT_EQ(GraphAccess::col_offsets(graph), graph.csc().col_offsets);
  const Graph other = some_graph();
  const SharedArray<EdgeOffset> known(std::vector<EdgeOffset>{0, 4, 4, 4, 4});
  GraphAccess::derived(other, GraphAccess::col_offsets_key, [&]() -> std::shared_ptr<const void> {
    return std::make_shared<SharedArray<EdgeOffset>>(known);
  });
  EXPECT_EQ(GraphAccess::col_offsets(other), known);
  EXPECT_EQ(column_degrees(other)->longest(), 4);
}

TEST(WeightSizes, AreThoseOfTheNumbers) {
  const Graph graph = some_graph().with_values(SharedArray<float>(std::vector<float>{-3, 0, 2, 5}));
  const SizeRange sizes = weight_sizes(graph, GraphAccess::values(graph));
  EXPECT_EQ(sizes.smallest, 2);
  EXPECT_EQ(sizes.largest, 5);
  EXPECT_TRUE(sizes.all_finite);
}

}  // namespace
}  // namespace tessera::detail
