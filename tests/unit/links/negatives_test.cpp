// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/negatives.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::links {
namespace {

using testing::entries_of;
using testing::expect_error;
using testing::random_graph;
using testing::ThreadScope;

std::vector<Graph> graphs() {
  return {random_graph(12, 12, 60, 1), with_self_loops(random_graph(9, 9, 40, 2), 1),
          random_graph(7, 15, 50, 3), random_graph(15, 7, 50, 4), random_graph(10, 10, 0, 5)};
}

/// How often each (source, target) would come if all that are no edges were equally likely.
std::map<std::pair<VertexId, VertexId>, double> equal_chances(const Graph& graph, double draws) {
  std::map<std::pair<VertexId, VertexId>, double> expected;
  const auto edges = entries_of(graph);
  for (VertexId source = 0; source < graph.num_cols(); ++source) {
    for (VertexId target = 0; target < graph.num_rows(); ++target) {
      if (graph.is_square() && source == target) continue;
      if (!edges.contains({target, source})) expected[{source, target}] = 0;
    }
  }
  for (auto& [pair, count] : expected) count = draws / static_cast<double>(expected.size());
  return expected;
}

/// Chi-square of the draws, whose mean is the number of outcomes less one: within six standard
/// deviations of it.
void expect_drawn(const Pairs& drawn, std::map<std::pair<VertexId, VertexId>, double> expected) {
  std::map<std::pair<VertexId, VertexId>, double> seen;
  for (std::size_t k = 0; k < drawn.sources.size(); ++k) {
    const std::pair pair{drawn.sources[k], drawn.targets[k]};
    ASSERT_TRUE(expected.contains(pair)) << pair.first << " to " << pair.second;
    ++seen[pair];
  }
  double squares = 0;
  for (const auto& [pair, count] : expected) {
    squares += (seen[pair] - count) * (seen[pair] - count) / count;
  }
  const auto freedom = static_cast<double>(expected.size()) - 1;
  EXPECT_LT(squares, freedom + 6 * std::sqrt(2 * freedom));
}

Pairs one_pair(VertexId source) { return {{source}, {0}}; }

TEST(Negatives, UniformPairsAreEquallyLikely) {
  for (const Graph& graph : graphs()) {
    constexpr std::int64_t draws = 40000;
    const NegativeSampler sampler(graph);
    const auto expected = equal_chances(graph, draws);
    EXPECT_EQ(sampler.num_negatives(), std::ssize(expected));
    expect_drawn(sampler.draw(one_pair(0), {.per_positive = draws, .seed = 11}), expected);
  }
}

TEST(Negatives, TargetsOfASourceAreEquallyLikely) {
  for (const Graph& graph : graphs()) {
    constexpr std::int64_t draws = 20000;
    const NegativeSampler sampler(graph);
    for (const VertexId source : {0, 3, graph.num_cols() - 1}) {
      auto expected = equal_chances(graph, 0);
      std::erase_if(expected, [&](const auto& one) { return one.first.first != source; });
      for (auto& [pair, count] : expected) count = double(draws) / double(expected.size());
      expect_drawn(
          sampler.draw(one_pair(source),
                       {.kind = NegativeKind::by_source, .per_positive = draws, .seed = 12}),
          expected);
    }
  }
}

TEST(Negatives, TargetsComeAsOftenAsTheyHaveEdges) {
  // Every vertex has few neighbours: 64 draws never all hit one.
  const Graph graph = generate::build(generate::ChungLu{.vertices = 40, .edges = 160});
  constexpr std::int64_t draws = 40000;
  const VertexId source = 5;
  auto expected = equal_chances(graph, 0);
  std::erase_if(expected, [&](const auto& one) {
    return one.first.first != source || graph.degree(one.first.second) == 0;
  });
  double degrees = 0;
  for (const auto& one : expected) degrees += double(graph.degree(one.first.second));
  for (auto& [pair, count] : expected) count = draws * double(graph.degree(pair.second)) / degrees;
  expect_drawn(
      NegativeSampler(graph).draw(
          one_pair(source), {.kind = NegativeKind::by_degree, .per_positive = draws, .seed = 13}),
      expected);
}

TEST(Negatives, DrawsByDegreeEndWhereEveryEdgeIsKnown) {
  // All edges lead to targets that source 0 knows, so that only the last, uniform draw succeeds.
  const std::vector<VertexId> sources{0, 0, 1}, targets{0, 1, 1};
  const Graph graph = from_coo(5, 2, targets, sources);
  const Pairs drawn = NegativeSampler(graph).draw(
      one_pair(0), {.kind = NegativeKind::by_degree, .per_positive = 300});
  for (const VertexId target : drawn.targets) EXPECT_GE(target, 2);
}

TEST(Negatives, DependOnSeedStepAndPairAlone) {
  const Graph graph = generate::build(generate::Rmat{.scale = 10, .edges = 9000});
  Pairs positives{std::vector<VertexId>(500), std::vector<VertexId>(500)};
  std::iota(positives.sources.begin(), positives.sources.end(), 0);
  for (const NegativeKind kind :
       {NegativeKind::uniform, NegativeKind::by_source, NegativeKind::by_degree}) {
    const auto drawn = [&](int threads, std::uint64_t seed, std::uint32_t step) {
      const ThreadScope scope(threads);
      return NegativeSampler(graph).draw(
          positives, {.kind = kind, .per_positive = 3, .seed = seed, .step = step});
    };
    EXPECT_EQ(drawn(1, 1, 0), drawn(16, 1, 0));
    EXPECT_NE(drawn(2, 1, 0), drawn(2, 2, 0));
    EXPECT_NE(drawn(2, 1, 0), drawn(2, 1, 1));
    if (kind == NegativeKind::uniform) continue;
    const Pairs pairs = drawn(2, 1, 0);
    for (std::size_t k = 0; k < pairs.sources.size(); ++k) {
      EXPECT_EQ(pairs.sources[k], positives.sources[k / 3]);
    }
  }
}

TEST(Negatives, NoPositivesGiveNone) { EXPECT_EQ(NegativeSampler(Graph()).draw({}, {}).size(), 0); }

TEST(Negatives, RefusesWhatHasNoNegatives) {
  std::vector<VertexId> sources, targets;
  for (VertexId i = 0; i < 9; ++i) {
    sources.push_back(i / 3);
    targets.push_back(i % 3);
  }
  const NegativeSampler full(from_edges(3, sources, targets));
  EXPECT_EQ(full.num_negatives(), 0);
  expect_error(ErrorCode::bad_data, {"every pair"}, [&] { full.draw(one_pair(0), {}); });
  expect_error(ErrorCode::bad_data, {"source 2", "every target"},
               [&] { full.draw(one_pair(2), {.kind = NegativeKind::by_source}); });
  const NegativeSampler some(random_graph(5, 5, 5, 1));
  expect_error(ErrorCode::invalid_argument, {"source 5"}, [&] { some.draw(one_pair(5), {}); });
  expect_error(ErrorCode::invalid_argument, {"source -1"}, [&] { some.draw(one_pair(-1), {}); });
  expect_error(ErrorCode::invalid_argument, {"0 negatives"},
               [&] { some.draw(one_pair(0), {.per_positive = 0}); });
}

}  // namespace
}  // namespace tessera::links
