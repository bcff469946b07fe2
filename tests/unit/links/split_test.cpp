// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support/expect_error.hpp"
#include "support/generated.hpp"
#include "support/random_coo.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::links {
namespace {

using testing::entries_of;
using testing::expect_error;
using testing::random_graph;
using testing::ThreadScope;

using Entries = std::map<std::pair<VertexId, VertexId>, float>;

constexpr LinkShares with_supervision{.validation = 0.1, .test = 0.2, .supervision = 0.3};

std::vector<Graph> graphs() {
  return {
      generate::build(generate::ErdosRenyi{.vertices = 60, .edges = 500, .symmetric = true}),
      generate::build(generate::ErdosRenyi{.vertices = 60, .edges = 500, .symmetric = false}),
      with_self_loops(generate::build(generate::ErdosRenyi{.vertices = 30, .edges = 200})),
      random_graph(40, 40, 900, 3),
      random_graph(25, 90, 400, 4),
  };
}

/// How many edges there are if an edge and its reverse count once.
std::int64_t links_in(const Graph& graph) {
  std::set<std::pair<VertexId, VertexId>> links;
  for (const auto& [entry, value] : entries_of(graph)) {
    auto [row, col] = entry;
    if (graph.is_square() && row > col) std::swap(row, col);
    links.emplace(row, col);
  }
  return std::ssize(links);
}

/// Entries and those of a part; pairs of a symmetric graph stand for both directions.
Entries with(const Entries& entries, const Graph& graph, const Pairs& pairs) {
  const bool symmetric = graph.is_square() && testing::is_symmetric(graph);
  Entries all = entries;
  const Entries whole = entries_of(graph);
  for (std::int64_t k = 0; k < pairs.size(); ++k) {
    const auto place = static_cast<std::size_t>(k);
    const std::pair<VertexId, VertexId> one{pairs.targets[place], pairs.sources[place]};
    const std::pair<VertexId, VertexId> reverse{one.second, one.first};
    EXPECT_TRUE(all.emplace(one, whole.at(one)).second) << "seen already";
    if (symmetric) all.emplace(reverse, whole.at(reverse));
  }
  return all;
}

TEST(LinkSplit, PartsHaveTheirSharesAndReversesStayTogether) {
  for (const Graph& graph : graphs()) {
    const auto parts = draw_link_parts(graph, with_supervision, 7);
    const LinkSplit split = split_links(graph, parts);  // which fails where a reverse is elsewhere
    const std::int64_t links = links_in(graph);
    EXPECT_EQ(links_in(graph) - links_in(split.test_graph), std::llround(0.2 * double(links)));
    EXPECT_EQ(links_in(split.test_graph) - links_in(split.validation_graph),
              std::llround(0.1 * double(links)));
  }
}

TEST(LinkSplit, GraphsGrowByThePairsOfTheParts) {
  for (const Graph& graph : graphs()) {
    const LinkSplit split = split_links(graph, draw_link_parts(graph, with_supervision, 1));
    const Entries message = entries_of(split.train_graph);
    const Entries trained = with(message, graph, split.train);
    EXPECT_EQ(trained, entries_of(split.validation_graph));
    const Entries validated = with(trained, graph, split.validation);
    EXPECT_EQ(validated, entries_of(split.test_graph));
    EXPECT_EQ(with(validated, graph, split.test), entries_of(graph));
  }
}

TEST(LinkSplit, WithoutSupervisionTheEdgesOfTheTrainingGraphAreAskedFor) {
  for (const Graph& graph : graphs()) {
    const LinkSplit split = split_links(graph, draw_link_parts(graph, {}, 1));
    EXPECT_EQ(split.train_graph, split.validation_graph);
    EXPECT_EQ(with({}, graph, split.train), entries_of(split.train_graph));
  }
}

TEST(LinkSplit, SymmetricGraphsGiveEveryPairOnce) {
  const Graph graph = generate::build(generate::ErdosRenyi{.vertices = 60, .edges = 500});
  const LinkSplit split = split_links(graph, draw_link_parts(graph, {}, 5));
  EXPECT_EQ(split.train.size() + split.validation.size() + split.test.size(), 250);
  for (std::size_t k = 0; k < split.test.sources.size(); ++k) {
    EXPECT_LT(split.test.sources[k], split.test.targets[k]);
  }
  EXPECT_EQ(2 * split.train.size(), split.train_graph.num_edges());
}

TEST(LinkSplit, DrawsDependOnTheSeedAndNotOnThreads) {
  const Graph graph = generate::build(generate::Rmat{.scale = 12, .edges = 60000});
  const auto drawn = [&](int threads, std::uint64_t seed) {
    const ThreadScope scope(threads);
    return draw_link_parts(graph, with_supervision, seed);
  };
  const auto parts = drawn(1, 1);
  EXPECT_EQ(parts, drawn(2, 1));
  EXPECT_EQ(parts, drawn(16, 1));
  EXPECT_NE(parts, drawn(2, 2));
}

TEST(LinkSplit, TheLatestEdgesAreForTheTest) {
  const Graph graph = random_graph(50, 80, 700, 9);
  std::vector<double> times(static_cast<std::size_t>(graph.num_edges()));
  const Random random(3);
  for (std::size_t e = 0; e < times.size(); ++e) times[e] = double(random.below(e, 90));
  const auto parts = link_parts_by_time(graph, times, with_supervision);
  std::map<LinkPart, std::pair<double, double>> spans;
  for (std::size_t e = 0; e < times.size(); ++e) {
    auto& [low, high] = spans.try_emplace(parts[e], times[e], times[e]).first->second;
    low = std::min(low, times[e]);
    high = std::max(high, times[e]);
  }
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_LE(spans[LinkPart::train].second, spans[LinkPart::supervision].first);
  EXPECT_LE(spans[LinkPart::supervision].second, spans[LinkPart::validation].first);
  EXPECT_LE(spans[LinkPart::validation].second, spans[LinkPart::test].first);
}

TEST(LinkSplit, AnEdgeAndItsReverseAreAsOldAsTheOlder) {
  // Edges by target: 0 <- 1, 1 <- 0, 2 <- 3, 3 <- 2. The first pair began at 1, the other at 5.
  const std::vector<VertexId> sources{1, 0, 3, 2}, targets{0, 1, 2, 3};
  const Graph graph = from_edges(4, sources, targets);
  const std::vector<double> times{1, 9, 5, 6};
  const auto parts = link_parts_by_time(graph, times, {.validation = 0, .test = 0.5});
  using enum LinkPart;
  EXPECT_EQ(parts, (std::vector<LinkPart>{train, train, test, test}));
}

TEST(LinkSplit, ChecksOfPartsSayWhetherPairsStandForBothDirections) {
  for (const bool symmetric : {true, false}) {
    const Graph graph =
        generate::build(generate::ErdosRenyi{.vertices = 30, .edges = 200, .symmetric = symmetric});
    EXPECT_EQ(check_link_parts(graph, draw_link_parts(graph, {}, 1)), symmetric);
  }
  const Graph wide = random_graph(5, 9, 20, 1);
  EXPECT_FALSE(check_link_parts(wide, draw_link_parts(wide, {}, 1)));
}

TEST(LinkSplit, SharesOfZeroAreEmpty) {
  const Graph graph = random_graph(20, 20, 100, 1);
  const LinkSplit split = split_links(graph, draw_link_parts(graph, {0, 0, 0}, 1));
  EXPECT_EQ(split.validation.size() + split.test.size(), 0);
  EXPECT_EQ(split.train_graph, graph);
}

TEST(LinkSplit, RefusesWhatLeavesNothingToTrainOn) {
  const Graph graph = random_graph(20, 20, 100, 1);
  for (const LinkShares shares : {LinkShares{0.5, 0.5, 0}, LinkShares{-0.1, 0.1, 0},
                                  LinkShares{0.1, 0.1, 1}, LinkShares{0, NAN, 0}}) {
    expect_error(ErrorCode::invalid_argument, {"shares of", "less than 1"},
                 [&] { draw_link_parts(graph, shares, 1); });
  }
  for (const int edges : {0, 1, 2}) {
    expect_error(ErrorCode::invalid_argument, {"leaves none to train on"}, [&] {
      draw_link_parts(random_graph(50, 80, edges, 1), {0.1, 0.1, 0}, 1);
    });
  }
}

TEST(LinkSplit, RefusesAReverseInAnotherPart) {
  const std::vector<VertexId> sources{1, 0, 2}, targets{0, 1, 1};
  const Graph graph = from_edges(3, sources, targets);
  using enum LinkPart;
  expect_error(ErrorCode::bad_data, {"the edge from 1 to 0", "its reverse"}, [&] {
    split_links(graph, std::vector{train, test, train});
  });
  EXPECT_EQ(split_links(graph, std::vector{test, test, train}).test.size(), 2);
}

TEST(LinkSplit, RefusesWhatDoesNotFitTheGraph) {
  const Graph graph = random_graph(20, 20, 100, 1);
  const std::vector<LinkPart> few(3, LinkPart::train);
  expect_error(ErrorCode::invalid_argument, {"3 parts"}, [&] { split_links(graph, few); });
  std::vector<double> times(static_cast<std::size_t>(graph.num_edges()), 1.0);
  times[4] = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorCode::bad_data, {"edge 4", "not a number"},
               [&] { link_parts_by_time(graph, times, {}); });
  times.pop_back();
  expect_error(ErrorCode::invalid_argument, {"times for"},
               [&] { link_parts_by_time(graph, times, {}); });
  const std::vector<VertexId> twice{1, 1};
  const Graph repeated = from_edges(2, twice, twice, {}, {.duplicates = Duplicates::keep});
  expect_error(ErrorCode::invalid_argument, {"several times"},
               [&] { draw_link_parts(repeated, {}, 1); });
}

}  // namespace
}  // namespace tessera::links
