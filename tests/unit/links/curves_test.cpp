// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/curves.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "support/expect_error.hpp"
#include "tessera/core/random.hpp"

namespace tessera::links {
namespace {

using testing::expect_error;

using Numbers = std::vector<double>;

double area(const Numbers& positives, const Numbers& negatives) {
  return roc_auc<double>(positives, negatives);
}
double precision(const Numbers& positives, const Numbers& negatives) {
  return average_precision<double>(positives, negatives);
}

/// Whole numbers below `different`: most of them tied.
Numbers drawn(std::size_t count, std::uint64_t different, std::uint64_t seed) {
  const Random random(seed);
  Numbers scores(count);
  for (std::size_t i = 0; i < count; ++i) scores[i] = double(random.below(i, different));
  return scores;
}

double at_least(const Numbers& scores, double threshold) {
  double count = 0;
  for (const double score : scores) count += score >= threshold ? 1 : 0;
  return count;
}

/// By its definition: each pair of a positive and a negative.
double area_by_pairs(const Numbers& positives, const Numbers& negatives) {
  double won = 0;
  for (const double p : positives) {
    for (const double n : negatives) won += p > n ? 1 : p == n ? 0.5 : 0;
  }
  return won / double(positives.size()) / double(negatives.size());
}

/// By its definition: the sum over thresholds of what recall gains times the precision there.
double precision_by_thresholds(const Numbers& positives, const Numbers& negatives) {
  std::set<double, std::greater<>> thresholds(positives.begin(), positives.end());
  thresholds.insert(negatives.begin(), negatives.end());
  double sum = 0, recall_before = 0;
  for (const double threshold : thresholds) {
    const double found = at_least(positives, threshold);
    const double recall = found / double(positives.size());
    sum += (recall - recall_before) * found / (found + at_least(negatives, threshold));
    recall_before = recall;
  }
  return sum;
}

TEST(Curves, KnownNumbers) {
  // The example of scikit-learn's pages: roc_auc_score gives 0.75, average_precision_score 0.83…
  EXPECT_DOUBLE_EQ(area({0.35, 0.8}, {0.1, 0.4}), 0.75);
  EXPECT_DOUBLE_EQ(precision({0.35, 0.8}, {0.1, 0.4}), 5.0 / 6);
  EXPECT_DOUBLE_EQ(area({2, 3}, {0, 1}), 1);
  EXPECT_DOUBLE_EQ(precision({2, 3}, {0, 1}), 1);
  EXPECT_DOUBLE_EQ(area({0, 1}, {2, 3}), 0);
  EXPECT_DOUBLE_EQ(precision({0, 1}, {2, 3}), (1.0 / 3 + 2.0 / 4) / 2);
}

TEST(Curves, ScoresThatAreAllAlikeSayNothing) {
  EXPECT_DOUBLE_EQ(area({1, 1, 1}, {1, 1, 1, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(precision({1, 1, 1}, {1, 1, 1, 1, 1}), 3.0 / 8);
}

TEST(Curves, AreWhatTheirDefinitionsSay) {
  for (const std::uint64_t different : {1, 2, 10, 100000}) {
    for (const auto& [found, wrong] : {std::pair{1, 1}, {1, 40}, {40, 1}, {90, 210}}) {
      const Numbers positives = drawn(std::size_t(found), different, different);
      const Numbers negatives = drawn(std::size_t(wrong), different, different + 1);
      EXPECT_NEAR(area(positives, negatives), area_by_pairs(positives, negatives), 1e-12);
      EXPECT_NEAR(precision(positives, negatives), precision_by_thresholds(positives, negatives),
                  1e-12);
      const std::vector<float> narrow_positives(positives.begin(), positives.end());
      const std::vector<float> narrow_negatives(negatives.begin(), negatives.end());
      EXPECT_EQ(roc_auc<float>(narrow_positives, narrow_negatives), area(positives, negatives));
      EXPECT_EQ(average_precision<float>(narrow_positives, narrow_negatives),
                precision(positives, negatives));
    }
  }
}

TEST(Curves, InfiniteScoresAreTheHighestAndTheLowest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(area({infinity, 0}, {-infinity, 1}), 0.75);
  EXPECT_DOUBLE_EQ(precision({infinity, -infinity}, {infinity, -infinity}), 0.5);
}

TEST(Curves, RefuseWhatMeansNothing) {
  for (const auto curve : {area, precision}) {
    expect_error(ErrorCode::invalid_argument, {"0 positives against 2 negatives"}, [&] {
      curve({}, {1, 2});
    });
    expect_error(ErrorCode::invalid_argument, {"1 positives against 0 negatives"},
                 [&] { curve({1}, {}); });
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    expect_error(ErrorCode::bad_data, {"not a number"}, [&] { curve({1, nan}, {0}); });
    expect_error(ErrorCode::bad_data, {"not a number"}, [&] { curve({1}, {0, nan}); });
  }
}

}  // namespace
}  // namespace tessera::links
