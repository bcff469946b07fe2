// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/loss.hpp"

#include "ops/loss/reference.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::argument_problem;

constexpr float none = std::numeric_limits<float>::quiet_NaN();
constexpr NumberLoss kinds[] = {NumberLoss::squared, NumberLoss::absolute, NumberLoss::huber};

template <class T>
Matrix<T> of_two_columns(std::initializer_list<T> values) {
  Matrix<T> matrix(std::ssize(values) / 2, 2);
  std::copy(values.begin(), values.end(), matrix.data());
  return matrix;
}

double value_of(ConstOperand predicted, const LossTargets& targets, Operand gradient = {}) {
  double value = -1;
  loss(predicted, targets, gradient, &value);
  return value;
}

/// Of torch: `MSELoss`, `L1Loss` and `HuberLoss(delta=0.5)` over the numbers that are there, in
/// double precision, and their gradients.
TEST(NumberLoss, HasTheNumbersOfTorch) {
  const Matrix<double> predicted = of_two_columns<double>({1.5, -0.25, 0.5, 2, 3, -1});
  const Matrix<float> wanted = of_two_columns<float>({1, 0.5, none, 2, 2.75, 4});
  const std::vector<std::int64_t> rows = {0, 1, 2};
  // Differences: 0.5, -0.75, none, 0, 0.25, -5.
  const double losses[] = {(0.25 + 0.5625 + 0 + 0.0625 + 25) / 5, (0.5 + 0.75 + 0 + 0.25 + 5) / 5,
                           (0.125 + 0.25 + 0 + 0.03125 + 2.375) / 5};
  const double gradients[3][6] = {
      {1, -1.5, 0, 0, 0.5, -10}, {1, -1, 0, 0, 1, -1}, {0.5, -0.5, 0, 0, 0.25, -0.5}};
  for (std::size_t k = 0; k < 3; ++k) {
    Matrix<double> gradient(3, 2);
    const auto targets = LossTargets::numbers(wanted, rows, kinds[k], {}, 0.5);
    EXPECT_DOUBLE_EQ(value_of(predicted, targets, gradient), losses[k]) << to_string(kinds[k]);
    for (std::int64_t i = 0; i < 6; ++i) {
      EXPECT_DOUBLE_EQ(gradient.data()[i], gradients[k][i] / 5) << to_string(kinds[k]) << ' ' << i;
    }
  }
}

TEST(NumberLoss, GradientsMatchFiniteDifferences) {
  auto predicted = test::normal_matrix<double>(9, 4, 61);
  auto wanted = test::normal_matrix<float>(9, 4, 62);
  wanted(2, 1) = none;
  wanted(5, 0) = none;
  const std::vector<std::int64_t> rows = {0, 2, 2, 5, 8};
  for (const NumberLoss kind : kinds) {
    const auto targets = LossTargets::numbers(wanted, rows, kind, {}, 0.8);
    Matrix<double> gradient(9, 4);
    value_of(predicted, targets, gradient);
    test::expect_gradient([&] { return value_of(predicted, targets); }, predicted, gradient);
    EXPECT_EQ(gradient(2, 1), 0);
    EXPECT_EQ(gradient(1, 0), 0);
  }
}

TEST(NumberLoss, AgreesWithTheReferenceAndForAnyNumberOfThreads) {
  for (const std::int64_t rows : {0, 1, 15, 17, 33, 4000}) {
    for (const std::int64_t cols : {1, 7, 33}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      const auto predicted = test::normal_matrix<double>(rows, cols, 1);
      auto wanted = test::normal_matrix<float>(rows, cols, 2);
      for (std::int64_t i = 0; i < wanted.size(); i += 3) wanted.data()[i] = none;
      std::vector<std::int64_t> chosen;
      for (std::int64_t i = 0; i < rows; i += 2) chosen.insert(chosen.end(), {i, rows - 1});
      for (const NumberLoss kind : kinds) {
        const auto targets = LossTargets::numbers(wanted, chosen, kind, {}, 0.7);
        Matrix<double> gradient(rows, cols), expected(rows, cols);
        const double right = reference::number_loss(predicted, wanted, chosen, kind, expected, 0.7);
        set_num_threads(1);
        const double value = value_of(predicted, targets, gradient);
        EXPECT_NEAR(value, right, 1e-12 * (1 + right));
        EXPECT_LE(test::largest_difference(gradient, expected), 1e-13);
        set_num_threads(3);
        EXPECT_EQ(value_of(predicted, targets), value);
        set_num_threads(0);
      }
    }
  }
}

TEST(NumberLoss, PassesNotANumberOnFromPredictionsThatCount) {
  Matrix<float> predicted(2, 2, 1.0f);
  predicted(1, 0) = none;
  Matrix<float> wanted(2, 2, 0.0f);
  const std::vector<std::int64_t> all = {0, 1}, first = {0};
  for (const NumberLoss kind : kinds) {
    EXPECT_TRUE(std::isnan(value_of(predicted, LossTargets::numbers(wanted, all, kind))));
    EXPECT_TRUE(std::isfinite(value_of(predicted, LossTargets::numbers(wanted, first, kind))));
  }
  wanted(1, 0) = none;
  EXPECT_TRUE(
      std::isfinite(value_of(predicted, LossTargets::numbers(wanted, all, NumberLoss::huber))));
}

TEST(NumberLoss, IsTheValidationLossOfAnEvaluation) {
  const auto predicted = test::normal_matrix<float>(5, 2, 1);
  const auto wanted = test::normal_matrix<float>(5, 2, 2);
  const std::vector<std::int64_t> train = {0, 1}, validation = {2, 4}, tested = {3};
  for (const NumberLoss kind : kinds) {
    EvaluationNumbers numbers;
    evaluate(predicted,
             EvaluationTargets::numbers(wanted, {train, validation, tested}, kind, {}, 0.5),
             &numbers);
    EXPECT_EQ(numbers.validation_loss,
              value_of(predicted, LossTargets::numbers(wanted, validation, kind, {}, 0.5)));
  }
}

TEST(NumberLoss, RejectsWhatCannotBe) {
  Matrix<float> wanted(2, 2, 1.0f);
  const std::vector<std::int64_t> rows = {0, 1}, far = {2};
  wanted(1, 1) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(argument_problem([&] { LossTargets::numbers(wanted, rows, NumberLoss::squared); }),
            "number_loss: targets[1][1] is inf, expected a finite number; give not-a-number where "
            "none is known");
  wanted(1, 1) = 1;
  EXPECT_EQ(argument_problem([&] { LossTargets::numbers(wanted, far, NumberLoss::squared); }),
            "number_loss: chosen row 2 is not among the 2 rows of logits");
  EXPECT_EQ(argument_problem([&] { LossTargets::numbers(wanted, rows, NumberLoss::huber, {}, 0); }),
            "number_loss: huber_delta is 0, expected a number above 0");
  const auto targets = LossTargets::numbers(wanted, rows, NumberLoss::huber);
  EXPECT_EQ(argument_problem([&] { value_of(Matrix<float>(2, 3, 0.0f), targets); }),
            "number_loss: logits is 2 x 3, expected 2 x 2");
  EXPECT_EQ(parse_number_loss("huber"), NumberLoss::huber);
  EXPECT_EQ(argument_problem([&] { parse_number_loss("cubed"); }),
            "unknown loss 'cubed'; use squared, absolute, huber");
}

}  // namespace
}  // namespace tessera::ops
