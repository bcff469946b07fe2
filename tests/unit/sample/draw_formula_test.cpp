// SPDX-License-Identifier: Apache-2.0
#include "sample/draw_formula.hpp"

#include <barrier>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sample/choose.hpp"
#include "sample/weighted_set.hpp"

/// What kernels of a GPU draw, a thread or a lane for each edge, is what the CPU draws in order.
namespace tessera::sample {
namespace {

/// One vertex with so many edges; `skew` doubles the weights from one to the next.
Candidates row_of(std::int64_t size, bool weighted, int skew = 0) {
  Candidates row;
  row.offsets = std::vector<EdgeOffset>{0, size};
  std::vector<VertexId> sources(static_cast<std::size_t>(size));
  std::iota(sources.begin(), sources.end(), 0);
  row.sources = std::move(sources);
  if (!weighted) return row;
  std::vector<float> weights;
  std::vector<double> running;
  double sum = 0;
  for (std::int64_t k = 0; k < size; ++k) {
    weights.push_back(std::ldexp(1.0f + static_cast<float>(k % 3), static_cast<int>(k) * skew));
    running.push_back(sum += weights.back());
  }
  row.weights = std::move(weights);
  row.running_weights = std::move(running);
  return row;
}

/// What the CPU draws of the edges from `begin` on.
std::vector<EdgeOffset> chosen(const Candidates& row, const HopRules& rules, const Choice& choice,
                               std::uint64_t element) {
  std::vector<EdgeOffset> drawn(static_cast<std::size_t>(count_of(rules, choice)));
  Chooser(row, rules).choose(choice, element, drawn);
  return drawn;
}

TEST(DrawFormula, AnEdgeOfASetIsFoundAlone) {
  for (const std::int64_t size : {1, 2, 3, 16, 17, 33, 70, 1000}) {
    for (const std::int64_t fan_out : {1, 2, 5, 15, 16, 32, 69, 70, 400, 999}) {
      for (const bool replace : {false, true}) {
        const Candidates row = row_of(size, false);
        for (std::uint64_t element = 0; element < 20; ++element) {
          const HopRules rules{fan_out, replace, false, Random(element, 5)};
          const Choice choice = choice_of(row.lists(), rules, 0, nullptr);
          const auto expected = chosen(row, rules, choice, element);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_EQ(drawn_edge(row.lists(), rules, choice, element, std::ssize(expected),
                                 static_cast<std::int64_t>(i)),
                      expected[i])
                << fan_out << " of " << size << ", element " << element << ", edge " << i;
          }
        }
      }
    }
  }
}

TEST(DrawFormula, AWeightedEdgeIsFoundAlone) {
  const Candidates row = row_of(50, true);
  for (const std::int64_t begin : {0, 7}) {
    const HopRules rules{12, true, false, Random(3)};
    Choice choice = choice_of(row.lists(), rules, 0, nullptr);
    choice.begin = begin;
    if (begin > 0) choice.base = row.running_weights[begin - 1];
    const auto expected = chosen(row, rules, choice, 9);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(drawn_edge(row.lists(), rules, choice, 9, 12, static_cast<std::int64_t>(i)),
                expected[i]);
    }
  }
}

/// Threads as the lanes of a team. They say something and then read what all have said.
struct Lanes {
  static constexpr std::int64_t size = 4;

  struct Shared {
    std::barrier<> barrier{size};
    std::array<EdgeOffset, size> edges{};
    std::array<bool, size> conditions{};
    std::array<WeightKey, size> keys{};
  };

  Shared& shared;
  int lane;

  void meet() const { shared.barrier.arrive_and_wait(); }
  bool is_first(EdgeOffset edge) const {
    shared.edges[static_cast<std::size_t>(lane)] = edge;
    meet();
    const auto first = std::find(shared.edges.begin(), shared.edges.end(), edge);
    const bool is_own = first - shared.edges.begin() == lane;
    meet();
    return is_own;
  }
  std::int64_t count(bool condition) const { return count_before(condition, size); }
  std::int64_t count_below(bool condition) const { return count_before(condition, lane); }
  WeightKey least(WeightKey key) const {
    shared.keys[static_cast<std::size_t>(lane)] = key;
    meet();
    const WeightKey found = *std::min_element(shared.keys.begin(), shared.keys.end());
    meet();
    return found;
  }

 private:
  std::int64_t count_before(bool condition, std::int64_t end) const {
    shared.conditions[static_cast<std::size_t>(lane)] = condition;
    meet();
    const auto found = std::count(shared.conditions.begin(), shared.conditions.begin() + end, true);
    meet();
    return found;
  }
};

TEST(DrawFormula, ATeamDrawsAWeightedSet) {
  struct Case {
    std::int64_t size, fan_out;
    int skew;
  };
  // Few left out, many left out, and weights of which a few outweigh all others.
  for (const Case& one :
       {Case{2, 1, 0}, {9, 5, 0}, {40, 5, 0}, {41, 5, 1}, {100, 3, 1}, {100, 12, 1}, {300, 8, 0}}) {
    const Candidates row = row_of(one.size, true, one.skew);
    for (std::uint64_t element = 0; element < 6; ++element) {
      const HopRules rules{one.fan_out, false, false, Random(element, 8)};
      const Choice choice = choice_of(row.lists(), rules, 0, nullptr);
      const auto expected = chosen(row, rules, choice, element);
      std::vector<EdgeOffset> drawn(expected.size(), -1);
      Lanes::Shared shared;
      std::vector<std::thread> lanes;
      for (int lane = 0; lane < Lanes::size; ++lane) {
        lanes.emplace_back([&, lane] {
          draw_weighted_set(Lanes{shared, lane}, row.lists(), rules, choice, element, drawn.data(),
                            std::ssize(drawn));
        });
      }
      for (std::thread& thread : lanes) thread.join();
      EXPECT_EQ(drawn, expected) << one.fan_out << " of " << one.size << ", element " << element;
    }
  }
}

}  // namespace
}  // namespace tessera::sample
