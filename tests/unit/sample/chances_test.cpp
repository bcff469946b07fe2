// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/chi_square.hpp"
#include "support/random_coo.hpp"
#include "tessera/sample/neighbours.hpp"

namespace tessera::sample {
namespace {

using testing::deviations;

using Outcome = std::vector<VertexId>;
using Counts = std::map<Outcome, double>;
constexpr int draws = 10000;
constexpr double too_far = 6;  // standard deviations

/// Vertex 0 with so many sources: 1, 2, …
Graph fan(VertexId degree) {
  std::vector<VertexId> sources(static_cast<std::size_t>(degree)), targets(sources.size(), 0);
  std::iota(sources.begin(), sources.end(), 1);
  return from_edges(degree + 1, sources, targets);
}

/// What vertex 0 drew in many steps: sources 0, 1, … of each, in their order.
Counts drawn(const Graph& graph, const NeighbourOptions& options) {
  const NeighbourSampler sampler(graph, options);
  const std::vector<VertexId> seeds{0};
  Counts counts;
  for (std::uint64_t step = 0; step < draws; ++step) {
    const NeighbourSample sample = sampler.draw(seeds, step);
    Outcome outcome;
    for (const EdgeOffset edge : sample.edges.here())
      outcome.push_back(static_cast<VertexId>(edge));
    std::sort(outcome.begin(), outcome.end());
    ++counts[outcome];
  }
  return counts;
}

/// All sets of `size` of the first `degree` numbers.
std::vector<Outcome> sets(VertexId degree, std::size_t size) {
  std::vector<Outcome> found{{}};
  for (std::size_t k = 0; k < size; ++k) {
    std::vector<Outcome> longer;
    for (const Outcome& set : found) {
      for (VertexId i = set.empty() ? 0 : set.back() + 1; i < degree; ++i) {
        longer.push_back(set);
        longer.back().push_back(i);
      }
    }
    found = std::move(longer);
  }
  return found;
}

/// Pairs of different sources, one drawn after the other in proportion to weights.
Counts expected_pairs(const std::vector<float>& weights) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  Counts expected;
  for (const Outcome& pair : sets(static_cast<VertexId>(weights.size()), 2)) {
    const double a = weights[static_cast<std::size_t>(pair[0])];
    const double b = weights[static_cast<std::size_t>(pair[1])];
    if (a == 0 || b == 0) continue;
    expected[pair] = draws * a / all * b / (all - a) + draws * b / all * a / (all - b);
  }
  return expected;
}

std::vector<float> rising_weights(VertexId degree) {
  std::vector<float> weights;
  for (VertexId i = 0; i < degree; ++i) weights.push_back(static_cast<float>(i % 4));
  return weights;
}

TEST(Chances, EverySetIsEquallyLikely) {
  for (const auto& [degree, count] : std::vector<std::pair<VertexId, std::size_t>>{
           {2, 1}, {5, 2}, {7, 3}, {7, 6}, {40, 2}, {1000, 1}}) {
    Counts expected;
    for (const Outcome& set : sets(degree, count)) expected[set] = 0;
    for (auto& one : expected) one.second = draws / static_cast<double>(expected.size());
    const std::uint64_t seed = 21;
    const Counts seen =
        drawn(fan(degree), {.fan_outs = {static_cast<std::int64_t>(count)}, .seed = seed});
    EXPECT_LT(deviations(seen, expected), too_far)
        << count << " of " << degree << ", seed " << seed;
  }
}

TEST(Chances, LongDrawsTakeEveryNeighbourEquallyOften) {
  for (const std::int64_t count : {31, 33, 60}) {
    constexpr VertexId degree = 64;
    const std::uint64_t seed = 22;
    std::vector<double> seen(degree);
    for (const auto& [outcome, times] : drawn(fan(degree), {.fan_outs = {count}, .seed = seed})) {
      for (const VertexId source : outcome) seen[static_cast<std::size_t>(source)] += times;
    }
    const double chance = static_cast<double>(count) / degree;
    double squares = 0;
    for (const double times : seen) squares += std::pow(times - draws * chance, 2);
    // As many are drawn every time, so that counts depend on each other.
    squares *= (degree - 1) / (degree * draws * chance * (1 - chance));
    EXPECT_LT((squares - (degree - 1)) / std::sqrt(2.0 * (degree - 1)), too_far)
        << count << " of " << degree << ", seed " << seed;
  }
}

TEST(Chances, DrawsWithReplacementAreIndependent) {
  Counts expected;
  for (VertexId a = 0; a < 6; ++a) {
    for (VertexId b = 0; b < 6; ++b) expected[{std::min(a, b), std::max(a, b)}] += draws / 36.0;
  }
  const std::uint64_t seed = 23;
  const Counts seen = drawn(fan(6), {.fan_outs = {2}, .replace = true, .seed = seed});
  EXPECT_LT(deviations(seen, expected), too_far) << "seed " << seed;
}

TEST(Chances, WeightsAreProportions) {
  for (const VertexId degree : {3, 6, 50}) {
    const std::vector<float> weights = rising_weights(degree);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    Counts expected;
    for (VertexId i = 0; i < degree; ++i) {
      const double weight = weights[static_cast<std::size_t>(i)];
      if (weight > 0) expected[{i}] = draws * weight / all;
    }
    for (const bool replace : {false, true}) {
      const std::uint64_t seed = 24;
      const Counts seen =
          drawn(fan(degree),
                {.fan_outs = {1}, .replace = replace, .edge_weights = weights, .seed = seed});
      EXPECT_LT(deviations(seen, expected), too_far) << degree << " neighbours, seed " << seed;
    }
  }
}

TEST(Chances, WeightedDrawsWithReplacementAreIndependent) {
  const std::vector<float> weights{1, 2, 0, 5, 0.5f};
  Counts expected;
  for (VertexId a = 0; a < 5; ++a) {
    for (VertexId b = 0; b < 5; ++b) {
      const double chance =
          weights[static_cast<std::size_t>(a)] / 8.5 * weights[static_cast<std::size_t>(b)] / 8.5;
      if (chance > 0) expected[{std::min(a, b), std::max(a, b)}] += draws * chance;
    }
  }
  const std::uint64_t seed = 25;
  const Counts seen =
      drawn(fan(5), {.fan_outs = {2}, .replace = true, .edge_weights = weights, .seed = seed});
  EXPECT_LT(deviations(seen, expected), too_far) << "seed " << seed;
}

TEST(Chances, WeightedSetsComeAsIfDrawnOneAfterTheOther) {
  // Few neighbours are drawn by keys, many by attempts; one great weight leaves attempts to keys.
  std::vector<std::vector<float>> cases{{1, 2, 3, 4, 5}, rising_weights(12), rising_weights(60)};
  cases.emplace_back(40, 1.0f)[7] = 1e6f;
  cases.emplace_back(40, 1.0f)[0] = 30;
  for (const std::vector<float>& weights : cases) {
    const std::uint64_t seed = 26;
    const auto degree = static_cast<VertexId>(weights.size());
    const Counts seen =
        drawn(fan(degree), {.fan_outs = {2}, .edge_weights = weights, .seed = seed});
    EXPECT_LT(deviations(seen, expected_pairs(weights)), too_far)
        << degree << " neighbours, seed " << seed;
  }
}

TEST(Chances, WrongExpectationsAreFound) {
  const std::vector<float> weights{1, 1, 1, 1, 1.15f};
  const Counts seen = drawn(fan(5), {.fan_outs = {2}, .edge_weights = weights, .seed = 27});
  EXPECT_GT(deviations(seen, expected_pairs(std::vector<float>(5, 1.0f))), too_far);
}

}  // namespace
}  // namespace tessera::sample
