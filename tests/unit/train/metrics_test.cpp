// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/expect_error.hpp"
#include "tessera/core/random.hpp"

namespace tessera::train {
namespace {

using testing::expect_error;

Matrix<float> matrix(std::int64_t rows, std::int64_t cols, const std::vector<float>& values) {
  Matrix<float> result(rows, cols);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

TEST(Metrics, accuracy_counts_chosen_rows_only) {
  const Matrix<float> logits = matrix(4, 3, {3, 1, 2, 0, 5, 1, 1, 1, 4, 9, 0, 0});
  const std::vector<std::int64_t> labels{0, 1, 2, 2};
  EXPECT_EQ(accuracy(logits, labels, std::vector<std::int64_t>{0, 1, 2, 3}), 0.75);
  EXPECT_EQ(accuracy(logits, labels, std::vector<std::int64_t>{3}), 0.0);
  EXPECT_EQ(accuracy(logits, labels, std::vector<std::int64_t>{}), 0.0);
}

TEST(Metrics, ties_go_to_the_lowest_class_and_nan_is_never_right) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Matrix<float> logits = matrix(3, 3, {2, 7, 7, 1, 1, 1, 5, nan, 0});
  EXPECT_EQ(predicted_class(logits, 0), 1);
  EXPECT_EQ(predicted_class(logits, 1), 0);
  EXPECT_EQ(predicted_class(logits, 2), -1);
}

TEST(Metrics, micro_f1_by_hand) {
  // Found: (0,0), (1,1). Wrongly said: (0,1). Missed: (1,2).
  const Matrix<float> logits = matrix(2, 3, {1, 2, -1, -3, 4, -5});
  const Matrix<float> targets = matrix(2, 3, {1, 0, 0, 0, 1, 1});
  const std::vector<std::int64_t> rows{0, 1};
  EXPECT_DOUBLE_EQ(micro_f1(logits, targets, rows), 2.0 * 2 / (2.0 * 2 + 1 + 1));
  const Matrix<float> silent = matrix(2, 3, {-1, -1, -1, -1, -1, -1});
  const Matrix<float> nothing = matrix(2, 3, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(micro_f1(silent, nothing, rows), 0.0);
  EXPECT_EQ(micro_f1(logits, targets, std::vector<std::int64_t>{0}), 2.0 / 3.0);
}

TEST(Metrics, roc_auc_known_values) {
  const std::vector<float> scores{0.1f, 0.4f, 0.35f, 0.8f};
  EXPECT_DOUBLE_EQ(roc_auc(scores, {false, false, true, true}), 0.75);
  EXPECT_DOUBLE_EQ(roc_auc(scores, {false, true, false, true}), 1.0);
  EXPECT_DOUBLE_EQ(roc_auc(scores, {true, false, true, false}), 0.0);
}

TEST(Metrics, roc_auc_ties_count_half) {
  EXPECT_DOUBLE_EQ(roc_auc(std::vector<float>{1, 1, 1, 1}, {true, false, true, false}), 0.5);
  // Positives 2, 3; negatives 2, 1: pairs 2-2 half, 2-1, 3-2, 3-1.
  EXPECT_DOUBLE_EQ(roc_auc(std::vector<float>{2, 3, 2, 1}, {true, true, false, false}), 3.5 / 4);
}

TEST(Metrics, roc_auc_is_the_share_of_ordered_pairs) {
  constexpr std::uint64_t seed = 5;
  SCOPED_TRACE(seed);
  const Random random(seed);
  std::vector<float> scores;
  std::vector<bool> positive;
  for (std::uint64_t i = 0; i < 67; ++i) {
    scores.push_back(static_cast<float>(random.below(2 * i, 12)));
    positive.push_back(random.below(2 * i + 1, 3) == 0);
  }
  double pairs = 0, ordered = 0;
  for (std::size_t p = 0; p < scores.size(); ++p) {
    for (std::size_t n = 0; n < scores.size(); ++n) {
      if (!positive[p] || positive[n]) continue;
      pairs += 1;
      ordered += scores[p] > scores[n] ? 1 : scores[p] == scores[n] ? 0.5 : 0;
    }
  }
  EXPECT_NEAR(roc_auc(scores, positive), ordered / pairs, 1e-15);
}

TEST(Metrics, average_precision_known_values) {
  // The example of scikit-learn's page, then the same with ties of a positive and a negative.
  const std::vector<double> scores{0.1, 0.4, 0.35, 0.8};
  EXPECT_NEAR(average_precision(scores, {false, false, true, true}), 0.8333333333333333, 1e-15);
  const std::vector<double> tied{1, 1, 0, 0};
  EXPECT_DOUBLE_EQ(average_precision(tied, {false, true, true, false}), 0.5);
  EXPECT_DOUBLE_EQ(average_precision(tied, {true, true, true, true}), 1.0);
  expect_error(ErrorCode::invalid_argument, {"needs positives"}, [&] {
    average_precision(tied, {false, false, false, false});
  });
  expect_error(ErrorCode::bad_data, {"not a number"}, [&] {
    average_precision(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()},
                      {true, false});
  });
}

TEST(Metrics, roc_auc_of_two_classes_and_of_columns) {
  const Matrix<float> logits = matrix(3, 2, {1, 0, 0, 1, 2, 1});
  const std::vector<std::int64_t> rows{0, 1, 2};
  EXPECT_DOUBLE_EQ(roc_auc(logits, std::vector<std::int64_t>{0, 1, 0}, rows), 1.0);
  // The second column has no negatives and does not count.
  const Matrix<float> targets = matrix(3, 2, {0, 1, 0, 1, 1, 1});
  EXPECT_DOUBLE_EQ(roc_auc(logits, targets.view(), rows), 1.0);
}

TEST(Metrics, roc_auc_without_both_kinds_is_an_error) {
  expect_error(ErrorCode::invalid_argument, {"positives and negatives"}, [] {
    roc_auc(std::vector<float>{1, 2}, {true, true});
  });
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorCode::bad_data, {"not a number"}, [&] {
    roc_auc(std::vector<float>{nan, 2}, {true, false});
  });
  const Matrix<float> logits = matrix(1, 3, {1, 0, 2});
  expect_error(ErrorCode::invalid_argument, {"more than two classes"}, [&] {
    roc_auc(logits, std::vector<std::int64_t>{0}, std::vector<std::int64_t>{0});
  });
}

TEST(Metrics, names) {
  EXPECT_EQ(parse_metric("roc_auc"), Metric::roc_auc);
  EXPECT_STREQ(to_string(Metric::micro_f1), "micro_f1");
  expect_error(ErrorCode::invalid_argument, {"'f2'", "micro_f1"}, [] { parse_metric("f2"); });
}

}  // namespace
}  // namespace tessera::train
