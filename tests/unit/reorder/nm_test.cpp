// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/nm.hpp"

#include <map>
#include <memory>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

#include "support/expect_error.hpp"
#include "support/nm_graphs.hpp"
#include "support/random_coo.hpp"

namespace tessera {
namespace {

using reorder::NmAlgorithm;
using reorder::NmOptions;
using reorder::NmOrder;
using reorder::NmPattern;
using test::band_around;
using test::random_undirected;
using test::star;
using test::violations_by_hand;
using testing::expect_error;

/// A graph that conforms to 1:2:4 in an order that is lost: of the proposed edges those that fit
/// are taken, then all vertices are shuffled.
Graph hidden_order(VertexId size, const std::vector<std::pair<VertexId, VertexId>>& proposed) {
  std::map<std::pair<VertexId, VertexId>, int> entries;  // of a row in a group
  std::set<std::pair<VertexId, VertexId>> edges;
  for (auto [i, j] : proposed) {
    if (i > j) std::swap(i, j);
    if (i == j || edges.contains({i, j})) continue;
    int& of_i = entries[{i, j / 4}];
    int& of_j = entries[{j, i / 4}];
    if (of_i == 2 || of_j == 2) continue;
    ++of_i;
    ++of_j;
    edges.emplace(i, j);
  }
  const Graph graph = testing::undirected_graph(size, {edges.begin(), edges.end()});
  EXPECT_TRUE(reorder::count_violations(graph, {1, 2, 4}).conforms());
  return permuted(graph, Permutation::random(size, 5));
}

class NmOrders : public ::testing::TestWithParam<const char*> {
 protected:
  NmPattern pattern() const { return NmPattern::parse(GetParam()); }
};

TEST_P(NmOrders, AreOrdersAndSayTheTruth) {
  for (const VertexId size : {0, 1, 2, 15, 16, 17, 31, 33, 200}) {
    for (const NmAlgorithm algorithm : {NmAlgorithm::group, NmAlgorithm::paper}) {
      SCOPED_TRACE(::testing::Message() << size << " vertices, " << to_string(algorithm));
      const Graph graph = random_undirected(size, 2 * size, 11);
      NmOptions options;
      options.algorithm = algorithm;
      options.effort = 0.02;
      const NmOrder found = order_nm(graph, pattern(), options);
      ASSERT_EQ(found.order.size(), size);
      const Graph ordered = permuted(graph, found.order);
      EXPECT_EQ(found.before, violations_by_hand(graph, pattern()));
      EXPECT_EQ(found.after, violations_by_hand(ordered, pattern()));
    }
  }
}

TEST_P(NmOrders, GroupsConformOnSparseGraphs) {
  const Graph graph = band_around(1003, 3);
  const NmOrder found = order_nm(graph, pattern());
  EXPECT_FALSE(found.before.conforms()) << "the test needs a graph that does not conform";
  EXPECT_TRUE(found.after.conforms());
  EXPECT_DOUBLE_EQ(found.improvement(), 1);
}

TEST_P(NmOrders, AreTheSameForAnyNumberOfThreads) {
  const Graph graph = random_undirected(300, 900, 8);
  NmOptions options;
  options.effort = 0.01;
  set_num_threads(1);
  const NmOrder one = order_nm(graph, pattern(), options);
  set_num_threads(4);
  const NmOrder four = order_nm(graph, pattern(), options);
  set_num_threads(0);
  EXPECT_EQ(one.order, four.order);
  EXPECT_EQ(one.after, four.after);
}

TEST_P(NmOrders, GiveTheBestSoFarWhenStopped) {
  const Graph graph = random_undirected(200, 4000, 2);  // far too dense
  for (const NmAlgorithm algorithm : {NmAlgorithm::group, NmAlgorithm::paper}) {
    NmOptions options;
    options.algorithm = algorithm;
    options.stop = [] { return true; };
    const NmOrder found = order_nm(graph, pattern(), options);
    EXPECT_TRUE(found.stopped);
    EXPECT_EQ(found.order.size(), 200);
    EXPECT_EQ(found.after, violations_by_hand(permuted(graph, found.order), pattern()));
  }
}

TEST_P(NmOrders, GiveTheBestSoFarAtATimeLimit) {
  const Graph graph = random_undirected(200, 4000, 2);
  for (const NmAlgorithm algorithm : {NmAlgorithm::group, NmAlgorithm::paper}) {
    NmOptions options;
    options.algorithm = algorithm;
    options.time_limit_seconds = 1e-9;
    const NmOrder found = order_nm(graph, pattern(), options);
    EXPECT_TRUE(found.stopped);
    EXPECT_EQ(found.after, violations_by_hand(permuted(graph, found.order), pattern()));
  }
}

TEST_P(NmOrders, SayHowFarTheyAre) {
  std::vector<std::int64_t> done;
  NmOptions options;
  options.progress = [&](std::string_view stage, std::int64_t so_far, std::int64_t total) {
    EXPECT_NE(stage.find(to_string(pattern())), std::string_view::npos) << stage;
    EXPECT_EQ(total, 100);
    done.push_back(so_far);
  };
  order_nm(band_around(100, 3), pattern(), options);
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.front(), 0);
  EXPECT_EQ(done.back(), 100);
}

INSTANTIATE_TEST_SUITE_P(Patterns, NmOrders,
                         ::testing::Values("1:2:4", "1:2:8", "1:2:16", "16:2:16", "32:2:8"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

/// A hub that fills a half of all groups, but more than that of the part it is in.
Graph hub_of_one_part() {
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId leaf = 1; leaf <= 50'000; ++leaf) edges.emplace_back(0, leaf);
  return testing::undirected_graph(140'000, edges);
}

/// Large graphs are grouped in parts, which takes them to another place in the code.
TEST(NmOrders, OfLargeGraphsAreMadeInParts) {
  const NmPattern pattern = {1, 2, 4};
  const Graph band = band_around(140'000, 3);
  const Graph hub = hub_of_one_part();
  for (const Graph& graph : {band, hub}) {
    std::vector<NmOrder> found;
    for (const int threads : {1, 3}) {
      const testing::ThreadScope scope(threads);
      found.push_back(reorder::order_nm(graph, pattern));
      EXPECT_TRUE(found.back().after.conforms());
      EXPECT_EQ(found.back().after,
                reorder::count_violations(permuted(graph, found.back().order), pattern));
    }
    EXPECT_EQ(found[0].order, found[1].order);
  }
  NmOptions stopped;
  stopped.stop = [] { return true; };
  const NmOrder early = reorder::order_nm(band, pattern, stopped);
  EXPECT_EQ(early.order.size(), band.num_rows());
}

/// Whoever asks to stop need not say so twice.
TEST(NmOrders, StayStopped) {
  const auto once = [] {
    return [asked = std::make_shared<bool>(false)] { return !std::exchange(*asked, true); };
  };
  NmOptions options;
  options.stop = once();
  const Graph hub = hub_of_one_part();
  const NmOrder in_parts = reorder::order_nm(hub, {1, 2, 4}, options);
  EXPECT_TRUE(in_parts.stopped);
  EXPECT_FALSE(in_parts.after.conforms());
  EXPECT_EQ(in_parts.order.size(), hub.num_rows());
  const Graph sparse = random_undirected(300, 400, 8);
  options.effort = 0.01;
  options.stop = {};
  EXPECT_GT(reorder::search_nm(sparse, reorder::NmSearch::hardest, options).tried.size(), 1u);
  options.stop = once();
  const auto found = reorder::search_nm(sparse, reorder::NmSearch::hardest, options);
  EXPECT_EQ(found.tried.size(), 1u);
  EXPECT_TRUE(found.best.stopped);
}

TEST(NmOrders, StopWhileColumnsArePlaced) {
  const Graph graph = reorder::padded(star(400), 600);
  const NmOrder placed = reorder::order_nm(graph, {1, 2, 4});
  ASSERT_FALSE(placed.before.conforms());
  ASSERT_TRUE(placed.after.conforms());
  ASSERT_EQ(placed.iterations, 0);  // nothing was left to fix
  NmOptions options;
  options.stop = [] { return true; };
  const NmOrder stopped = reorder::order_nm(graph, {1, 2, 4}, options);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_FALSE(stopped.after.conforms());
  EXPECT_LE(stopped.after.vectors, stopped.before.vectors);
  EXPECT_EQ(stopped.order.size(), graph.num_rows());
}

TEST(NmOrders, FillTightRowsExactly) {
  // Every group must hold exactly two leaves of the hub.
  const Graph tight = reorder::padded(star(40), 39);
  const NmOrder found = reorder::order_nm(tight, {1, 2, 4});
  EXPECT_TRUE(found.after.conforms());
}

TEST(NmOrders, FindWhatEightRowsWithHalfOfAllColumnsLeave) {
  constexpr VertexId size = 400;
  std::vector<std::pair<VertexId, VertexId>> proposed;
  for (VertexId hub = 0; hub < 8; ++hub) {
    const Permutation columns = Permutation::random(size, static_cast<std::uint64_t>(hub));
    for (const VertexId column : columns.new_to_old()) proposed.emplace_back(50 * hub, column);
  }
  const Permutation others = Permutation::random(size, 9);
  for (const VertexId i : others.new_to_old()) {
    proposed.emplace_back(i, (7 * i + 3) % size);
  }
  const Graph graph = hidden_order(size, proposed);
  EXPECT_GT(graph.num_edges(), 2 * 8 * (size / 2 - 10));
  EXPECT_TRUE(reorder::order_nm(graph, {1, 2, 4}).after.conforms());
}

/// As of an optimisation with constraints: a band, multipliers with three entries each, and rows
/// that use nearly half of all columns.
Graph constrained(VertexId size, int long_rows) {
  const VertexId variables = size - size / 3;
  std::vector<std::pair<VertexId, VertexId>> edges;
  for (VertexId i = 0; i + 1 < variables; ++i) edges.emplace_back(i, i + 1);
  const Permutation drawn = Permutation::random(variables, 4);
  for (VertexId i = 0; i < 3 * (size / 3); ++i) {
    edges.emplace_back(variables + i / 3, drawn.new_to_old()[i % variables]);
  }
  for (int row = 0; row < long_rows; ++row) {
    const Permutation columns = Permutation::random(variables, static_cast<std::uint64_t>(row));
    const auto count = static_cast<std::size_t>(size / 2 - 10);
    for (const VertexId column : columns.new_to_old().span().subspan(0, count)) {
      edges.emplace_back(variables + row, column);
    }
  }
  return without_self_loops(symmetrised(testing::undirected_graph(size, edges)));
}

/// Columns of many groups have to change places, more than swaps among all of them find.
TEST(NmOrders, DealColumnsOfNearlyFullRows) {
  const NmPattern pattern = {1, 2, 4};
  const Graph graph = constrained(20'000, 4);
  ASSERT_FALSE(reorder::find_obstacle(graph, pattern));
  std::vector<NmOrder> found;
  for (const int threads : {1, 3}) {
    const testing::ThreadScope scope(threads);
    found.push_back(reorder::order_nm(graph, pattern));
    EXPECT_TRUE(reorder::count_violations(permuted(graph, found.back().order), pattern).conforms());
  }
  EXPECT_EQ(found[0].order, found[1].order);
}

/// Wherever a search is when it is told to stop, it gives an order.
TEST(NmOrders, StopWhileHandsAreGrouped) {
  const Graph graph = constrained(20'000, 4);
  int asked = 0;
  NmOptions options;
  options.stop = [&] { return ++asked < 0; };
  const NmOrder whole = reorder::order_nm(graph, {1, 2, 4}, options);
  ASSERT_FALSE(whole.stopped);
  const int times = asked;
  ASSERT_GT(times, 8);
  for (const int until : {times / 4, times / 2, 3 * times / 4}) {
    asked = 0;
    options.stop = [&] { return ++asked == until; };
    const NmOrder found = reorder::order_nm(graph, {1, 2, 4}, options);
    EXPECT_TRUE(found.stopped) << until;
    EXPECT_EQ(asked, until) << "who asks to stop need not say so twice";
    EXPECT_EQ(found.order.size(), graph.num_rows());
    EXPECT_LE(found.after.vectors, found.before.vectors);
  }
}

TEST(NmOrders, FindTheOrderOfDensePatterns) {
  constexpr VertexId size = 100;
  std::vector<std::pair<VertexId, VertexId>> proposed;
  const Permutation pairs = Permutation::random(size * size, 3);
  for (const VertexId pair : pairs.new_to_old()) {
    if (proposed.size() < 1500) proposed.emplace_back(pair / size, pair % size);
  }
  const Graph graph = hidden_order(size, proposed);
  EXPECT_GT(graph.num_edges(), size * size / 5);
  EXPECT_TRUE(reorder::order_nm(graph, {1, 2, 4}).after.conforms());
}

TEST(NmOrders, ViolateInFewGroupsWhereTheyMust) {
  // 40 leaves, 41 vertices: ten groups and one vertex hold 21 of them. Each full group holds two
  // more, so ten groups have to violate.
  const NmOrder found = reorder::order_nm(star(40), {1, 2, 4});
  EXPECT_EQ(found.after.vectors, 10);
  // 30 leaves of 61 vertices: all fit.
  EXPECT_TRUE(reorder::order_nm(reorder::padded(star(30), 30), {1, 2, 4}).after.conforms());
  // 30 leaves of 49 vertices: 12 groups and one vertex hold 25, and three more groups six.
  EXPECT_EQ(reorder::order_nm(reorder::padded(star(30), 18), {1, 2, 4}).after.vectors, 3);
}

TEST(NmOrders, PadWhereThatHelps) {
  NmOptions options;
  EXPECT_FALSE(reorder::order_nm(star(30), {1, 2, 4}, options).obstacle.empty());
  options.pad = true;
  const NmOrder found = reorder::order_nm(star(30), {1, 2, 4}, options);
  EXPECT_TRUE(found.obstacle.empty());
  EXPECT_EQ(found.padding, 58 - 31);
  EXPECT_EQ(found.order.size(), 58);
  EXPECT_TRUE(found.after.conforms());
}

TEST(NmOrders, KeepSelfLoopsUnlessTold) {
  const Graph looped = with_self_loops(random_undirected(64, 100, 4));
  NmOptions options;
  const NmOrder with = reorder::order_nm(looped, {1, 2, 4}, options);
  EXPECT_EQ(with.after, violations_by_hand(permuted(looped, with.order), {1, 2, 4}));
  options.ignore_loops = true;
  const NmOrder without = reorder::order_nm(looped, {1, 2, 4}, options);
  EXPECT_EQ(without.before, violations_by_hand(without_self_loops(looped), {1, 2, 4}));
}

TEST(NmOrders, MakeDirectedGraphsConformBothWays) {
  const Graph directed = testing::random_graph(300, 300, 700, 6, false);
  const NmOrder found = reorder::order_nm(directed, {1, 2, 8});
  ASSERT_TRUE(found.after.conforms());
  const Graph ordered = permuted(directed, found.order);
  EXPECT_TRUE(violations_by_hand(ordered, {1, 2, 8}).conforms());
  EXPECT_TRUE(violations_by_hand(transposed(ordered), {1, 2, 8}).conforms());
}

TEST(NmOrders, RejectWhatCannotBe) {
  expect_error(ErrorCode::invalid_argument, {"rectangular"}, [] {
    reorder::order_nm(testing::random_graph(3, 4, 5, 1, false), {1, 2, 4});
  });
  NmOptions options;
  options.effort = 0;
  expect_error(ErrorCode::invalid_argument, {"effort"}, [&] {
    reorder::order_nm(star(3), {1, 2, 4}, options);
  });
}

}  // namespace
}  // namespace tessera
