// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/nm_graphs.hpp"
#include "support/random_coo.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"

/// What conforms to a pattern, what cannot, what is dropped until it does, and the search for one.
namespace tessera {
namespace {

using reorder::NmOptions;
using reorder::NmOrder;
using reorder::NmPattern;
using test::band_around;
using test::random_undirected;
using test::star;
using test::violations_by_hand;
using testing::expect_error;

TEST(NmPattern, ReadsAndWrites) {
  EXPECT_EQ(NmPattern::parse("16:2:8"), (NmPattern{16, 2, 8}));
  EXPECT_EQ(NmPattern::parse("2:4"), (NmPattern{1, 2, 4}));
  EXPECT_EQ(to_string(NmPattern{32, 2, 16}), "32:2:16");
  for (const char* text : {"", "4", "2:", "1:2:4:", "1:2:4:8", "a:2:4", "1:2:4x", " 1:2:4"}) {
    expect_error(ErrorCode::invalid_argument, {text, "V:2:M"}, [&] { NmPattern::parse(text); });
  }
  expect_error(ErrorCode::invalid_argument, {"'3:4'", "N = 2"}, [] { NmPattern::parse("3:4"); });
  expect_error(ErrorCode::invalid_argument, {"V is 3"}, [] { NmPattern::parse("3:2:4"); });
  expect_error(ErrorCode::invalid_argument, {"M is 64"}, [] { NmPattern::parse("1:2:64"); });
}

TEST(NmViolations, AreThoseCountedByHand) {
  for (const VertexId size : {0, 1, 15, 16, 17, 31, 33, 100}) {
    for (const char* text : {"1:2:4", "4:2:8", "16:2:16", "32:2:8"}) {
      SCOPED_TRACE(::testing::Message() << size << " vertices, " << text << ", seed 5");
      const Graph graph = testing::random_graph(size, size, 6 * size, 5, false);
      const NmPattern pattern = NmPattern::parse(text);
      EXPECT_EQ(count_violations(graph, pattern), violations_by_hand(graph, pattern));
    }
  }
}

TEST(NmObstacle, IsTheLongestRow) {
  const NmPattern pattern;
  EXPECT_FALSE(reorder::find_obstacle(reorder::padded(star(4), 1), pattern));  // 2 + 2 of the rest
  const auto obstacle = reorder::find_obstacle(star(6), pattern);
  ASSERT_TRUE(obstacle);
  EXPECT_NE(obstacle->reason.find("3 empty vertices"), std::string::npos) << obstacle->reason;
  EXPECT_EQ(obstacle->padding, 3);  // six entries need two groups and two more columns
  EXPECT_FALSE(reorder::find_obstacle(reorder::padded(star(6), 3), pattern));
  EXPECT_TRUE(reorder::find_obstacle(reorder::padded(star(6), 2), pattern));
}

TEST(NmObstacle, IsTheNumberOfEntries) {
  // All 64 rows have 14 entries and would fit 1:2:8, but 8 x 8 meta-blocks hold 8 entries each.
  const Graph ring = band_around(64, 7);
  EXPECT_FALSE(reorder::find_obstacle(ring, {1, 2, 8}));
  EXPECT_TRUE(reorder::find_obstacle(ring, {8, 2, 8}));
  EXPECT_EQ(reorder::find_obstacle(ring, {8, 2, 8})->padding, -1);
}

TEST(NmObstacle, IsTheNumberOfSelfLoops) {
  // The loops of eight neighbours stand in one meta-block, where four columns may be used.
  const auto with_loops = [](VertexId loops) {
    return reorder::padded(with_self_loops(testing::undirected_graph(loops, {})), 64 - loops);
  };
  for (const char* text : {"8:2:8", "16:2:8", "8:2:16"}) {
    const NmPattern pattern = NmPattern::parse(text);
    EXPECT_FALSE(reorder::find_obstacle(with_loops(32), pattern)) << text;
    ASSERT_TRUE(reorder::find_obstacle(with_loops(33), pattern)) << text;
    EXPECT_EQ(reorder::find_obstacle(with_loops(33), pattern)->padding, -1);
    EXPECT_TRUE(reorder::order_nm(with_loops(32), pattern).after.conforms()) << text;
  }
  for (const char* text : {"1:2:16", "4:2:8", "32:2:4"}) {
    EXPECT_FALSE(reorder::find_obstacle(with_loops(64), NmPattern::parse(text))) << text;
  }
}

TEST(NmPruning, LeavesWhatConforms) {
  for (const VertexId size : {0, 1, 15, 17, 33, 200}) {
    for (const char* text : {"1:2:4", "4:2:8", "16:2:16", "32:2:8"}) {
      SCOPED_TRACE(::testing::Message() << size << " vertices, " << text << ", seed 7");
      const Graph graph = testing::random_graph(size, size, 12 * size, 7);
      const NmPattern pattern = NmPattern::parse(text);
      const reorder::NmPruned pruned = reorder::prune_nm(graph, pattern);
      pruned.graph.validate();
      EXPECT_TRUE(violations_by_hand(pruned.graph, pattern).conforms());
      EXPECT_EQ(pruned.graph.num_edges() + pruned.dropped, graph.num_edges());
      const auto before = testing::entries_of(graph);
      for (const auto& [place, weight] : testing::entries_of(pruned.graph)) {
        EXPECT_EQ(before.at(place), weight);
      }
    }
  }
}

TEST(NmPruning, DropsTheSmallestWeightsFirst) {
  const std::vector<VertexId> rows{0, 0, 0, 0, 1, 1, 1};
  const std::vector<VertexId> cols{0, 1, 2, 3, 0, 1, 2};
  const std::vector<float> values{1, -4, 2, 3, 1, 1, 1};
  const reorder::NmPruned pruned = reorder::prune_nm(from_coo(2, 4, rows, cols, values), {1, 2, 4});
  EXPECT_EQ(pruned.dropped, 3);
  EXPECT_EQ(
      std::vector<VertexId>(pruned.graph.col_indices().begin(), pruned.graph.col_indices().end()),
      (std::vector<VertexId>{1, 3, 0, 1}));
}

TEST(NmPruning, LeavesAloneWhatConforms) {
  const Graph path = testing::path_graph(40);
  const reorder::NmPruned pruned = reorder::prune_nm(path, {1, 2, 4});
  EXPECT_EQ(pruned.dropped, 0);
  EXPECT_EQ(pruned.graph, path);
}

TEST(NmSearch, SkipsWhatIsImpossible) {
  const Graph graph = with_self_loops(band_around(64, 1));
  for (const char* name : {"hardest", "time"}) {
    SCOPED_TRACE(name);
    const auto found = reorder::search_nm(graph, reorder::parse_nm_search(name));
    EXPECT_TRUE(found.best.after.conforms());
    for (const NmOrder& order : found.tried) EXPECT_EQ(order.obstacle, "") << order.pattern;
  }
}

TEST(NmSearch, FindsAPatternThatConforms) {
  const Graph graph = random_undirected(500, 700, 9);
  NmOptions options;
  options.effort = 0.05;
  for (const char* name : {"paper", "hardest", "time"}) {
    SCOPED_TRACE(name);
    const auto found = reorder::search_nm(graph, reorder::parse_nm_search(name), options);
    EXPECT_TRUE(found.best.after.conforms());
    EXPECT_FALSE(found.tried.empty());
    const Graph ordered = permuted(graph, found.best.order);
    EXPECT_EQ(violations_by_hand(ordered, found.best.pattern), found.best.after);
  }
}

TEST(NmWork, CountsColumnsOfWindows) {
  const Graph path = testing::path_graph(32);
  const auto work = reorder::nm_work(path, {1, 2, 4});
  EXPECT_EQ(work.gathered_rows, 17 + 17);
  EXPECT_EQ(work.quads, 5 + 5);
}

}  // namespace
}  // namespace tessera
