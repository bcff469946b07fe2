// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/loss.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"

#include "ops/loss/reference.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::argument_problem;
using test::normal_matrix;
using test::to_double;

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-13;

template <class T>
class Loss : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(0); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Loss, Types);

std::vector<std::int64_t> random_labels(std::int64_t rows, std::int64_t classes) {
  const Random random(8);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int64_t>(random.below(i, static_cast<std::uint64_t>(classes)));
  }
  return labels;
}

Matrix<float> random_targets(std::int64_t rows, std::int64_t cols) {
  const Random random(9);
  Matrix<float> targets(rows, cols);
  for (std::int64_t i = 0; i < targets.size(); ++i) {
    targets.data()[i] = random.uniform(static_cast<std::uint64_t>(i)) < 0.3 ? 1.0f : 0.0f;
  }
  return targets;
}

/// Two of every three rows, the first of them twice.
std::vector<std::int64_t> some_rows(std::int64_t rows) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = rows - 1; i >= 0; --i) {
    if (i % 3 != 1) chosen.push_back(i);
  }
  if (!chosen.empty()) chosen.push_back(chosen.front());
  return chosen;
}

TYPED_TEST(Loss, CrossEntropyAgreesWithTheReference) {
  using T = TypeParam;
  for (const std::int64_t rows : {0, 1, 15, 16, 17, 33, 800}) {
    for (const std::int64_t classes : {1, 7, 33, 257}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << classes);
      auto logits = normal_matrix<T>(rows, classes, 1);
      for (T& value : logits.span()) value *= T{6};
      const auto labels = random_labels(rows, classes);
      const auto chosen = some_rows(rows);
      test::Padded<T> gradient(logits);
      const double loss = cross_entropy(logits, labels, chosen, gradient.view());
      Matrix<double> expected(rows, classes);
      const double expected_loss =
          reference::cross_entropy(to_double(logits), labels, chosen, expected);
      EXPECT_NEAR(loss, expected_loss, tolerance<T> * (1 + expected_loss));
      EXPECT_LE(test::largest_difference(gradient.view(), expected), tolerance<T>);
      EXPECT_TRUE(gradient.margins_intact());
      EXPECT_EQ(cross_entropy(logits, labels, chosen, {}), loss);
      EXPECT_EQ(cross_entropy(logits, labels, chosen, logits), loss) << "in place";
      EXPECT_LE(test::largest_difference(logits, expected), tolerance<T>) << "in place";
    }
  }
}

TYPED_TEST(Loss, BinaryCrossEntropyAgreesWithTheReference) {
  using T = TypeParam;
  for (const std::int64_t rows : {0, 1, 15, 16, 17, 33, 800}) {
    for (const std::int64_t cols : {0, 1, 7, 33, 121}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      auto logits = normal_matrix<T>(rows, cols, 1);
      for (T& value : logits.span()) value *= T{40};
      const auto targets = random_targets(rows, cols);
      const auto chosen = some_rows(rows);
      test::Padded<T> gradient(logits);
      const double loss = binary_cross_entropy(logits, targets, chosen, gradient.view());
      Matrix<double> expected(rows, cols);
      const double expected_loss =
          cols == 0 ? 0
                    : reference::binary_cross_entropy(to_double(logits), targets, chosen, expected);
      EXPECT_NEAR(loss, expected_loss, tolerance<T> * (1 + expected_loss));
      EXPECT_LE(test::largest_difference(gradient.view(), expected), tolerance<T>);
      EXPECT_TRUE(gradient.margins_intact());
      EXPECT_EQ(binary_cross_entropy(logits, targets, chosen, {}), loss);
    }
  }
}

TYPED_TEST(Loss, GivesTheSameBitsForAnyNumberOfThreads) {
  using T = TypeParam;
  const auto logits = normal_matrix<T>(4000, 11, 1);
  const auto labels = random_labels(4000, 11);
  const auto targets = random_targets(4000, 11);
  const auto chosen = some_rows(4000);
  double first_class = 0, first_binary = 0;
  Matrix<T> first_gradient;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Matrix<T> gradient(4000, 11);
    const double binary = binary_cross_entropy(logits, targets, chosen, {});
    const double classes = cross_entropy(logits, labels, chosen, gradient);
    if (threads > 1) {
      EXPECT_EQ(classes, first_class);
      EXPECT_EQ(binary, first_binary);
      EXPECT_TRUE(test::same_bits(first_gradient, gradient));
    }
    first_class = classes;
    first_binary = binary;
    first_gradient = std::move(gradient);
  }
}

TYPED_TEST(Loss, PassesNotANumberOnFromChosenRowsOnly) {
  using T = TypeParam;
  auto logits = normal_matrix<T>(4, 3, 1);
  logits(2, 1) = std::numeric_limits<T>::quiet_NaN();
  const std::vector<std::int64_t> labels = {0, 1, 2, 0};
  const Matrix<float> targets(4, 3, 0.0f);
  const std::vector<std::int64_t> all = {0, 1, 2, 3}, good = {0, 1, 3};
  EXPECT_TRUE(std::isnan(cross_entropy(logits, labels, all, {})));
  EXPECT_TRUE(std::isfinite(cross_entropy(logits, labels, good, {})));
  EXPECT_TRUE(std::isnan(binary_cross_entropy(logits, targets, all, {})));
  EXPECT_TRUE(std::isfinite(binary_cross_entropy(logits, targets, good, {})));
}

TEST(Loss, CrossEntropyOfEqualLogitsIsTheLogOfTheClasses) {
  const Matrix<float> logits(5, 7, 3.0f);
  const std::vector<std::int64_t> labels = {0, 1, 2, 3, -1}, rows = {0, 1, 2, 3};
  EXPECT_NEAR(cross_entropy(logits, labels, rows, {}), std::log(7.0), 1e-6);
  EXPECT_EQ(cross_entropy(logits, labels, {}, {}), 0);
}

TEST(Loss, SurvivesHugeLogits) {
  Matrix<float> logits(1, 2, 1e30f);
  logits(0, 1) = -1e30f;
  const std::vector<std::int64_t> labels = {0}, rows = {0};
  Matrix<float> gradient(1, 2);
  EXPECT_EQ(cross_entropy(logits, labels, rows, gradient), 0);
  EXPECT_EQ(gradient(0, 0), 0);
  Matrix<float> targets(1, 2, 0.0f);
  targets(0, 0) = 1;
  EXPECT_EQ(binary_cross_entropy(logits, targets, rows, gradient), 0);
  EXPECT_EQ(gradient(0, 1), 0);
}

TEST(Loss, GradientsMatchFiniteDifferences) {
  auto logits = normal_matrix<double>(6, 4, 61);
  const auto labels = random_labels(6, 4);
  const auto targets = random_targets(6, 4);
  const auto chosen = some_rows(6);
  Matrix<double> gradient(6, 4);
  cross_entropy(logits, labels, chosen, gradient);
  test::expect_gradient([&] { return cross_entropy(logits, labels, chosen, {}); }, logits,
                        gradient);
  binary_cross_entropy(logits, targets, chosen, gradient);
  test::expect_gradient([&] { return binary_cross_entropy(logits, targets, chosen, {}); }, logits,
                        gradient);
}

/// As `torch.nn.functional.cross_entropy` with a mean over what rows weigh.
TEST(Loss, WeighsClassesAndSmoothsLabels) {
  auto logits = normal_matrix<double>(9, 4, 61);
  const auto labels = random_labels(9, 4);
  const auto targets = random_targets(9, 4);
  const auto chosen = some_rows(9);
  const std::vector<float> weights = {0.25f, 3, 0, 1};
  const auto value_of = [&](const LossTargets& of, Operand gradient) {
    double value = -1;
    loss(logits, of, gradient, &value);
    return value;
  };
  for (const LossOptions& options :
       {LossOptions{weights, 0}, LossOptions{{}, 0.3}, LossOptions{weights, 0.1}}) {
    const auto wanted = LossTargets::classes(labels, chosen, 4, {}, options);
    Matrix<double> gradient(9, 4), expected(9, 4);
    EXPECT_NEAR(value_of(wanted, gradient),
                reference::cross_entropy(logits, labels, chosen, expected, options), 1e-13);
    EXPECT_LE(test::largest_difference(gradient, expected), 1e-13);
    test::expect_gradient([&] { return value_of(wanted, {}); }, logits, gradient);
  }
  const auto wanted = LossTargets::binary(targets, chosen, {}, {{}, 0.5});
  Matrix<double> gradient(9, 4), expected(9, 4);
  EXPECT_NEAR(value_of(wanted, gradient),
              reference::binary_cross_entropy(logits, targets, chosen, expected, 0.5), 1e-13);
  EXPECT_LE(test::largest_difference(gradient, expected), 1e-13);
  test::expect_gradient([&] { return value_of(wanted, {}); }, logits, gradient);
}

TEST(Loss, RejectsWrongOptions) {
  const std::vector<std::int64_t> labels = {0, 1}, rows = {0, 1};
  const std::vector<float> two = {1, 1}, negative = {1, -1, 1};
  const auto problem = [&](const LossOptions& options) {
    return argument_problem([&] { LossTargets::classes(labels, rows, 3, {}, options); });
  };
  EXPECT_EQ(problem({two, 0}), "cross_entropy: 2 weights for 3 classes");
  EXPECT_EQ(problem({negative, 0}), "cross_entropy: a class weighs -1, expected a number from 0");
  EXPECT_EQ(problem({{}, 1}),
            "cross_entropy: the smoothing is 1, expected a number from 0 to below 1");
}

TEST(Loss, RejectsWrongLabelsRowsAndTargets) {
  const Matrix<float> logits(3, 4, 0.0f);
  const std::vector<std::int64_t> labels = {0, -1, 4}, short_labels = {0};
  const std::vector<std::int64_t> first = {0}, second = {1}, third = {2}, fourth = {3};
  EXPECT_THAT(argument_problem([&] { cross_entropy(logits, labels, second, {}); }),
              testing::HasSubstr("row 1 is chosen but has no label"));
  EXPECT_EQ(argument_problem([&] { cross_entropy(logits, labels, third, {}); }),
            "cross_entropy: row 2 has label 4, logits have 4 columns");
  EXPECT_EQ(argument_problem([&] { cross_entropy(logits, labels, fourth, {}); }),
            "cross_entropy: chosen row 3 is not among the 3 rows of logits");
  EXPECT_EQ(argument_problem([&] { cross_entropy(logits, short_labels, first, {}); }),
            "cross_entropy: 1 labels for logits of 3 x 4");
  const Matrix<float> targets(3, 4, 0.5f), narrow(3, 2, 0.0f);
  EXPECT_EQ(argument_problem([&] { binary_cross_entropy(logits, targets, first, {}); }),
            "binary_cross_entropy: targets[0][0] is 0.5, expected 0 or 1");
  EXPECT_EQ(argument_problem([&] { binary_cross_entropy(logits, narrow, first, {}); }),
            "binary_cross_entropy: targets is 3 x 2, expected 3 x 4");
}

}  // namespace
}  // namespace tessera::ops
