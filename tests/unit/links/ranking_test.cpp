// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/ranking.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "support/expect_error.hpp"
#include "support/random_coo.hpp"

namespace tessera::links {
namespace {

using testing::expect_error;
using testing::random_graph;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Numbers = std::vector<double>;
double hits(const Numbers& positives, const Numbers& negatives, std::int64_t k) {
  return hits_at<double>(positives, negatives, k);
}

Matrix<double> drawn_scores(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<double> scores(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < scores.size(); ++i) {
    scores.data()[i] = static_cast<double>(random.below(static_cast<std::uint64_t>(i), 12));
  }
  return scores;
}

TEST(HitsAt, CountsPositivesAboveTheKthNegative) {
  const Numbers negatives{5, 1, 3, 3};
  EXPECT_EQ(hits({6, 5, 4, 3, 0}, negatives, 1), 1.0 / 5);
  EXPECT_EQ(hits({6, 5, 4, 3, 0}, negatives, 2), 3.0 / 5);  // the second best is 3: ties lose
  EXPECT_EQ(hits({6, 5, 4, 3, 0}, negatives, 4), 4.0 / 5);
  EXPECT_EQ(hits({0}, negatives, 5), 1);  // fewer negatives than K
  EXPECT_EQ(hits({}, negatives, 1), 0);
}

TEST(HitsAt, RefusesWhatMeansNothing) {
  expect_error(ErrorCode::bad_data, {"not a number"}, [] { hits({1, nan}, {0}, 1); });
  expect_error(ErrorCode::bad_data, {"not a number"}, [] { hits({1}, {0, nan}, 1); });
  expect_error(ErrorCode::invalid_argument, {"best 0"}, [] { hits({1}, {0}, 0); });
}

TEST(Ranks, TiesTakeTheMeanOfTheirPlaces) {
  Matrix<double> negatives(3, 4);
  const double rows[3][4] = {{1, 2, 3, 4}, {7, 7, 7, 7}, {9, 7, 7, 0}};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) negatives(i, j) = rows[i][j];
  }
  const Numbers positives{5, 7, 7};
  const auto found = ranks<double>(positives, negatives);
  EXPECT_EQ(found, (Numbers{1, 3, 3}));
  EXPECT_DOUBLE_EQ(mean_reciprocal_rank(found), (1 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(hits_within(found, 1), 1.0 / 3);
  EXPECT_DOUBLE_EQ(hits_within(found, 3), 1);
  EXPECT_EQ(mean_reciprocal_rank({}), 0);
}

TEST(Ranks, FilteredRanksLeaveOutWhatIsKnown) {
  constexpr VertexId rows = 40, cols = 30;
  const Matrix<double> scores = drawn_scores(rows, cols, 5);
  const Graph known = random_graph(rows, cols, 300, 6);
  std::vector<VertexId> truths(rows);
  for (VertexId i = 0; i < rows; ++i) truths[static_cast<std::size_t>(i)] = (7 * i) % cols;
  const auto raw = ranks_of<double>(scores, truths);
  const auto filtered = ranks_of<double>(scores, truths, &known);
  for (VertexId i = 0; i < rows; ++i) {
    const VertexId truth = truths[static_cast<std::size_t>(i)];
    const auto row = known.neighbours(i);
    const std::set<VertexId> left_out(row.begin(), row.end());
    const auto rank = [&](bool filters) {
      std::int64_t best = 1, worst = 1;  // for all ties lost, and all won
      for (VertexId j = 0; j < cols; ++j) {
        if (j == truth || (filters && left_out.contains(j))) continue;
        best += scores(i, j) > scores(i, truth) ? 1 : 0;
        worst += scores(i, j) >= scores(i, truth) ? 1 : 0;
      }
      return static_cast<double>(best + worst) / 2;
    };
    EXPECT_EQ(raw[static_cast<std::size_t>(i)], rank(false));
    EXPECT_EQ(filtered[static_cast<std::size_t>(i)], rank(true));
  }
}

TEST(Ranks, RefusesWhatDoesNotFit) {
  const Matrix<double> scores = drawn_scores(2, 3, 1);
  expect_error(ErrorCode::invalid_argument, {"true candidate of row 1 is 3"}, [&] {
    ranks_of<double>(scores, std::vector<VertexId>{0, 3});
  });
  expect_error(ErrorCode::invalid_argument, {"1 true candidates for 2 rows"},
               [&] { ranks_of<double>(scores, std::vector<VertexId>{0}); });
  const Graph other(random_graph(3, 3, 2, 1));
  expect_error(ErrorCode::invalid_argument, {"rows of known candidates"}, [&] {
    ranks_of<double>(scores, std::vector<VertexId>{0, 1}, &other);
  });
  Matrix<double> odd = drawn_scores(1, 3, 1);
  odd(0, 2) = nan;
  expect_error(ErrorCode::bad_data, {"not a number"},
               [&] { ranks_of<double>(odd, std::vector<VertexId>{0}); });
}

TEST(ListQuality, ByHand) {
  // Row 0 wants {1, 4}, row 1 {0, 2, 3}, row 2 nothing.
  const std::vector<VertexId> rows{0, 0, 1, 1, 1}, cols{1, 4, 0, 2, 3};
  const Graph truth = from_coo(3, 5, rows, cols);
  Matrix<VertexId> lists(3, 2);
  const VertexId listed[3][2] = {{3, 1}, {2, 0}, {1, -1}};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) lists(i, j) = listed[i][j];
  }
  const ListQuality quality = list_quality(lists, truth);
  EXPECT_EQ(quality.rows, 2);
  EXPECT_DOUBLE_EQ(quality.recall, (1.0 / 2 + 2.0 / 3) / 2);
  const double second = 1 / std::log2(3.0);
  EXPECT_DOUBLE_EQ(quality.ndcg, (second / (1 + second) + 1) / 2);
}

TEST(ListQuality, NothingToFindIsSaid) {
  const Matrix<VertexId> lists(4, 3, VertexId{-1});
  EXPECT_EQ(list_quality(lists, random_graph(4, 9, 0, 1)).rows, 0);
  const Graph truth = random_graph(4, 9, 20, 1);
  EXPECT_EQ(list_quality(lists, truth).recall, 0);
  expect_error(ErrorCode::invalid_argument, {"4 lists for 5 rows"},
               [&] { list_quality(lists, random_graph(5, 9, 3, 1)); });
}

}  // namespace
}  // namespace tessera::links
