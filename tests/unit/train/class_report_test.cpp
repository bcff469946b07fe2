// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/class_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/expect_error.hpp"
#include "tessera/core/random.hpp"

namespace tessera::train {
namespace {

using testing::expect_error;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

Matrix<float> matrix(std::int64_t rows, std::int64_t cols, const std::vector<float>& values) {
  Matrix<float> result(rows, cols);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

std::vector<std::int64_t> all_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

void expect_shares(const ClassQuality& quality, double precision, double recall, double f1) {
  EXPECT_NEAR(quality.precision.value(), precision, 1e-12);
  EXPECT_NEAR(quality.recall.value(), recall, 1e-12);
  EXPECT_NEAR(quality.f1.value(), f1, 1e-12);
}

void expect_mean(const MeanQuality& mean, double precision, double recall, double f1, double auc,
                 double average_precision) {
  EXPECT_NEAR(mean.precision, precision, 1e-12);
  EXPECT_NEAR(mean.recall, recall, 1e-12);
  EXPECT_NEAR(mean.f1, f1, 1e-12);
  EXPECT_NEAR(mean.roc_auc.value(), auc, 1e-12);
  EXPECT_NEAR(mean.average_precision.value(), average_precision, 1e-12);
}

// What scikit-learn 1.9.1 gives for this case: precision_recall_fscore_support, roc_auc_score and
// average_precision_score of each class against the others, log_loss and confusion_matrix. Rows 0,
// 1 and 8 tie; no item is of class 3, and class 2 is never predicted.
TEST(ClassReport, has_the_numbers_of_scikit_learn) {
  const Matrix<float> logits =
      matrix(10, 4, {2, 1, 0, -1, 2, 1, 0,    -1, 0, 3, 1,   0, 1, 1, 0, 2,  0, 0.5, -1, 0,
                     4, 0, 1, 0,  0, 2, 1.5f, 0,  1, 0, 0.5, 3, 2, 1, 0, -1, 0, 3,   1,  0});
  const std::vector<std::int64_t> truth{0, 1, 1, 2, 1, 0, 2, 0, 0, 1};
  const ClassReport report = class_report(logits, truth, all_rows(10));
  EXPECT_EQ(report.items, 10);
  EXPECT_EQ(report.accuracy, 0.6);
  expect_shares(report.classes[0], 0.75, 0.75, 0.75);
  expect_shares(report.classes[1], 0.75, 0.75, 0.75);
  EXPECT_FALSE(report.classes[2].precision) << "never predicted";
  EXPECT_EQ(report.classes[2].recall, 0);
  EXPECT_EQ(report.classes[2].f1, 0);
  EXPECT_EQ(report.classes[3].precision, 0);
  EXPECT_FALSE(report.classes[3].recall) << "no item is of it";
  EXPECT_FALSE(report.classes[3].roc_auc);
  EXPECT_FALSE(report.classes[3].average_precision);
  const double auc[] = {0.8333333333333333, 0.875, 0.625};
  const double average[] = {0.7678571428571428, 0.8303571428571428, 0.625};
  const std::int64_t support[] = {4, 4, 2, 0}, predicted[] = {4, 4, 0, 2}, found[] = {3, 3, 0, 0};
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(report.classes[k].support, support[k]);
    EXPECT_EQ(report.classes[k].predicted, predicted[k]);
    EXPECT_EQ(report.classes[k].found, found[k]);
    if (k == 3) continue;
    EXPECT_NEAR(report.classes[k].roc_auc.value(), auc[k], 1e-12);
    EXPECT_NEAR(report.classes[k].average_precision.value(), average[k], 1e-12);
  }
  expect_mean(report.macro, 0.375, 0.375, 0.375, (auc[0] + auc[1] + auc[2]) / 3,
              (average[0] + average[1] + average[2]) / 3);
  expect_mean(report.weighted, 0.6, 0.6, 0.6, 0.4 * (auc[0] + auc[1]) + 0.2 * auc[2],
              0.4 * (average[0] + average[1]) + 0.2 * average[2]);
  EXPECT_NEAR(report.log_loss.value(), 0.9709007533396893, 1e-12);
  EXPECT_NEAR(report.calibration_error.value(), 0.29740641569975756, 1e-12);
  EXPECT_EQ(report.calibration[6].count, 3);
  EXPECT_NEAR(report.calibration[6].probability, 0.64391426, 1e-8);
  EXPECT_NEAR(report.calibration[6].share_true, 2.0 / 3, 1e-12);
  const std::vector<ConfusedItems> confusion{{0, 0, 3}, {0, 3, 1}, {1, 0, 1},
                                             {1, 1, 3}, {2, 1, 1}, {2, 3, 1}};
  EXPECT_EQ(report.confusion, confusion);
  EXPECT_FALSE(report.micro);
}

// As scikit-learn 1.9.1 has it; the log loss is the mean of that of each label.
TEST(ClassReport, of_several_labels_has_the_numbers_of_scikit_learn) {
  const Matrix<float> logits =
      matrix(6, 3, {1, -1, 0.5, 2, -2, -1, -1, 0.5, -3, 1, -1, 0.5, -2, -0.5, -1, 3, -1, -0.25});
  const Matrix<float> truth = matrix(6, 3, {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0});
  const ClassReport report = label_report(logits, truth, all_rows(6));
  EXPECT_TRUE(report.multi_label);
  EXPECT_NEAR(report.accuracy, 1.0 / 6, 1e-12);
  EXPECT_NEAR(report.hamming_loss.value(), 0.3888888888888889, 1e-12);
  expect_shares(report.classes[0], 0.75, 0.75, 0.75);
  expect_shares(report.classes[1], 1, 0.5, 2.0 / 3);
  expect_shares(report.classes[2], 0, 0, 0);
  EXPECT_NEAR(report.classes[0].roc_auc.value(), 0.6875, 1e-12);
  EXPECT_NEAR(report.classes[0].average_precision.value(), 0.8541666666666666, 1e-12);
  EXPECT_NEAR(report.classes[1].average_precision.value(), 0.7, 1e-12);
  expect_mean(report.micro.value(), 0.5714285714285714, 0.5, 0.5333333333333333, 0.61875,
              0.6490021008403362);
  expect_mean(report.macro, 0.5833333333333334, 0.4166666666666667, 0.47222222222222215, 0.5625,
              0.6513888888888889);
  expect_mean(report.weighted, 0.625, 0.5, 0.5416666666666666, 0.59375, 0.7020833333333333);
  EXPECT_NEAR(report.log_loss.value(), 0.6920166440567476, 1e-12);
  EXPECT_NEAR(report.calibration_error.value(), 0.2503810897161648, 1e-12);
  EXPECT_TRUE(report.confusion.empty());
}

/// The metrics once more, by their definitions, with loops over pairs and thresholds.
struct ByDefinition {
  std::vector<double> scores;
  std::vector<bool> positive;

  double roc_auc() const {
    double pairs = 0, ordered = 0;
    for (std::size_t p = 0; p < scores.size(); ++p) {
      for (std::size_t n = 0; n < scores.size(); ++n) {
        if (!positive[p] || positive[n]) continue;
        pairs += 1;
        ordered += scores[p] > scores[n] ? 1 : scores[p] == scores[n] ? 0.5 : 0;
      }
    }
    return ordered / pairs;
  }

  double average_precision() const {
    std::vector<double> thresholds = scores;
    std::sort(thresholds.begin(), thresholds.end(), std::greater<>());
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
    const auto positives = static_cast<double>(std::count(positive.begin(), positive.end(), true));
    double sum = 0, recall_before = 0;
    for (const double threshold : thresholds) {
      double taken = 0, right = 0;
      for (std::size_t i = 0; i < scores.size(); ++i) {
        if (scores[i] < threshold) continue;
        taken += 1;
        right += positive[i] ? 1 : 0;
      }
      sum += (right / positives - recall_before) * right / taken;
      recall_before = right / positives;
    }
    return sum;
  }
};

TEST(ClassReport, is_what_the_definitions_say) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Random random(seed, 3);
    const auto items = static_cast<std::int64_t>(5 + random.below(0, 60));
    const auto classes = static_cast<std::int64_t>(2 + random.below(1, 5));
    Matrix<float> logits(items, classes);
    std::vector<std::int64_t> truth, rows;
    for (std::int64_t i = 0; i < items; ++i) {
      // Few different numbers, so that many tie.
      for (std::int64_t k = 0; k < classes; ++k) {
        const auto draw = static_cast<std::uint64_t>(100 + i * classes + k);
        logits(i, k) = 0.5f * static_cast<float>(random.below(draw, 4)) - 1;
      }
      truth.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(50000 + i),
                                                             static_cast<std::uint64_t>(classes))));
      if (i % 5 != 3) rows.push_back(i);
    }
    const ClassReport report = class_report(logits, truth, rows);
    double loss = 0, distance = 0, right = 0;
    std::vector<std::vector<double>> shares;
    double in_bin[11] = {}, right_in_bin[11] = {};
    for (const std::int64_t row : rows) {
      std::vector<double>& share = shares.emplace_back();
      // In the order of the report, so that rounding parts no ties.
      const float highest = *std::max_element(logits.row(row), logits.row(row) + classes);
      double sum = 0;
      for (std::int64_t k = 0; k < classes; ++k) {
        share.push_back(std::exp(double{logits(row, k)} - double{highest}));
        sum += share.back();
      }
      for (double& part : share) part /= sum;
      const auto is = static_cast<std::size_t>(truth[static_cast<std::size_t>(row)]);
      const auto best = std::max_element(share.begin(), share.end());
      const bool met =
          share[is] == *best &&
          std::find(share.begin(), share.end(), *best) - share.begin() == std::ptrdiff_t(is);
      loss -= std::log(share[is]);
      right += met ? 1 : 0;
      const auto bin = static_cast<std::size_t>(std::ceil(*best * 10));
      in_bin[bin] += *best;
      right_in_bin[bin] += met ? 1 : 0;
    }
    for (int b = 0; b <= 10; ++b) distance += std::abs(in_bin[b] - right_in_bin[b]);
    const auto count = static_cast<double>(rows.size());
    EXPECT_NEAR(report.accuracy, right / count, 1e-12);
    EXPECT_NEAR(report.log_loss.value(), loss / count, 1e-9);
    EXPECT_NEAR(report.calibration_error.value(), distance / count, 1e-9);
    for (std::int64_t k = 0; k < classes; ++k) {
      SCOPED_TRACE(k);
      const ClassQuality& quality = report.classes[static_cast<std::size_t>(k)];
      ByDefinition expected;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        expected.scores.push_back(shares[i][static_cast<std::size_t>(k)]);
        expected.positive.push_back(truth[static_cast<std::size_t>(rows[i])] == k);
      }
      EXPECT_EQ(quality.support,
                std::count(expected.positive.begin(), expected.positive.end(), true));
      ASSERT_EQ(quality.average_precision.has_value(), quality.support > 0);
      ASSERT_EQ(quality.roc_auc.has_value(),
                quality.support > 0 && quality.support < std::ssize(rows));
      if (quality.roc_auc) {
        EXPECT_NEAR(*quality.roc_auc, expected.roc_auc(), 1e-9);
      }
      if (quality.average_precision) {
        EXPECT_NEAR(*quality.average_precision, expected.average_precision(), 1e-9);
      }
    }
  }
}

TEST(ClassReport, one_class_alone_has_no_ranking_against_others) {
  const Matrix<float> logits = matrix(2, 1, {3, -1});
  const ClassReport report = class_report(logits, std::vector<std::int64_t>{0, 0}, all_rows(2));
  EXPECT_EQ(report.accuracy, 1);
  expect_shares(report.classes[0], 1, 1, 1);
  EXPECT_FALSE(report.classes[0].roc_auc);
  EXPECT_EQ(report.classes[0].average_precision, 1);
  EXPECT_FALSE(report.macro.roc_auc);
  EXPECT_EQ(report.log_loss, 0);
  EXPECT_EQ(report.calibration_error, 0);
  EXPECT_EQ(report.calibration[9].count, 2);
}

TEST(ClassReport, logits_that_are_no_numbers_are_of_no_class) {
  const Matrix<float> logits = matrix(3, 2, {1, 0, nan, 5, 0, 1});
  const ClassReport report = class_report(logits, std::vector<std::int64_t>{0, 1, 1}, all_rows(3));
  EXPECT_EQ(report.undecided, 1);
  EXPECT_NEAR(report.accuracy, 2.0 / 3, 1e-12);
  EXPECT_EQ(report.classes[1].recall, 0.5);
  EXPECT_EQ(report.confusion, (std::vector<ConfusedItems>{{0, 0, 1}, {1, -1, 1}, {1, 1, 1}}));
  EXPECT_FALSE(report.classes[0].roc_auc || report.classes[0].average_precision);
  EXPECT_FALSE(report.log_loss || report.calibration_error || report.macro.roc_auc);
  // Rows that are not judged may hold anything.
  EXPECT_TRUE(
      class_report(logits, std::vector<std::int64_t>{0, -1, 1}, std::vector<std::int64_t>{0, 2})
          .log_loss);
  const ClassReport labels = label_report(logits, matrix(3, 2, {1, 0, 0, 1, 0, 1}), all_rows(3));
  EXPECT_EQ(labels.undecided, 1);
  EXPECT_NEAR(labels.accuracy, 2.0 / 3, 1e-12) << "no answer is not a right no";
  EXPECT_FALSE(labels.log_loss || labels.micro->roc_auc || labels.classes[1].roc_auc);
  EXPECT_EQ(labels.micro->f1, 1);
}

TEST(ClassReport, infinite_logits_are_certain_or_impossible) {
  const Matrix<float> logits = matrix(2, 2, {0, -infinity, -infinity, 0});
  const ClassReport right = class_report(logits, std::vector<std::int64_t>{0, 1}, all_rows(2));
  EXPECT_EQ(right.log_loss, 0);
  EXPECT_EQ(right.macro.roc_auc, 1);
  const ClassReport wrong = class_report(logits, std::vector<std::int64_t>{1, 0}, all_rows(2));
  EXPECT_FALSE(wrong.log_loss) << "it is infinite";
  EXPECT_EQ(wrong.calibration_error, 1);
  const ClassReport odd =
      class_report(matrix(2, 2, {infinity, 0, 0, 1}), std::vector<std::int64_t>{0, 1}, all_rows(2));
  EXPECT_EQ(odd.accuracy, 1);
  EXPECT_FALSE(odd.calibration_error) << "what infinity is of the sum is not known";
}

TEST(ClassReport, losses_are_exact_where_probabilities_are_too_small) {
  const Matrix<float> logits = matrix(1, 2, {0, 2000});
  EXPECT_NEAR(class_report(logits, std::vector<std::int64_t>{0}, all_rows(1)).log_loss.value(),
              2000, 1e-9);
  EXPECT_NEAR(label_report(logits, matrix(1, 2, {0, 0}), all_rows(1)).log_loss.value(),
              (std::log(2.0) + 2000) / 2, 1e-9);
}

TEST(ClassReport, labels_without_any_yes_count_as_nothing_found) {
  const Matrix<float> logits = matrix(2, 2, {-1, 1, -1, -1});
  const ClassReport report = label_report(logits, matrix(2, 2, {0, 1, 0, 0}), all_rows(2));
  EXPECT_FALSE(report.classes[0].f1 || report.classes[0].roc_auc);
  EXPECT_EQ(report.macro.f1, 0.5) << "over all labels";
  EXPECT_EQ(report.macro.roc_auc, 1) << "over those that have one";
  EXPECT_EQ(report.weighted.f1, 1);
  const ClassReport none = label_report(logits, matrix(2, 2, {0, 0, 0, 0}), all_rows(2));
  EXPECT_EQ(none.weighted.f1, 0);
  EXPECT_FALSE(none.weighted.roc_auc || none.micro->average_precision);
}

TEST(ClassReport, probabilities_on_a_boundary_belong_below_it) {
  // Two classes of the same logit: one half is the end of the fifth bin.
  const ClassReport report =
      class_report(matrix(1, 2, {1, 1}), std::vector<std::int64_t>{0}, all_rows(1));
  EXPECT_EQ(report.calibration[4].count, 1);
  EXPECT_EQ(report.calibration_error, 0.5);
  EXPECT_EQ(
      label_report(matrix(1, 1, {-infinity}), matrix(1, 1, {0}), all_rows(1)).calibration[0].count,
      1);
}

TEST(ClassReport, what_cannot_be_judged_is_an_error) {
  const Matrix<float> logits = matrix(2, 2, {1, 0, 0, 1});
  expect_error(ErrorCode::invalid_argument, {"nothing is known", "labels"}, [&] {
    class_report(logits, std::vector<std::int64_t>{0, 1}, {});
  });
  expect_error(ErrorCode::invalid_argument, {"row 1 is of class 2 of 2"}, [&] {
    class_report(logits, std::vector<std::int64_t>{0, 2}, all_rows(2));
  });
  expect_error(ErrorCode::invalid_argument, {"no classes"}, [&] {
    class_report(Matrix<float>(2, 0), std::vector<std::int64_t>{0, 0}, all_rows(2));
  });
}

TEST(ClassReport, of_a_prediction_leaves_out_what_the_model_does_not_know) {
  Prediction prediction;
  prediction.logits = matrix(4, 2, {1, 0, 0, 1, 1, 0, 1, 0});
  prediction.classes = {5, 9, 5, 5};
  prediction.class_values = {5, 9};
  prediction.true_classes = {5, 9, {}, 7};
  const std::vector<std::int64_t> items = all_rows(4);
  EXPECT_EQ(judged_items(prediction, items), (std::vector<std::int64_t>{0, 1}));
  const ClassReport report = report_on(prediction, items);
  EXPECT_EQ(report.items, 2);
  EXPECT_EQ(report.accuracy, 1);
  EXPECT_EQ(report.classes[1].name, "9");
  expect_error(ErrorCode::invalid_argument, {"nothing is known"}, [&] {
    report_on(prediction, std::vector<std::int64_t>{2, 3});
  });
}

}  // namespace
}  // namespace tessera::train
