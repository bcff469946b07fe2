// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "ops/loss/reference.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/loss.hpp"

/// Losses and their gradients on every device and in every precision against the references.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

class Losses : public test::DenseTest {};

/// Two of every three rows, the first of them twice.
std::vector<std::int64_t> some_rows(std::int64_t rows) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = rows - 1; i >= 0; --i) {
    if (i % 3 != 1) chosen.push_back(i);
  }
  if (!chosen.empty()) chosen.push_back(chosen.front());
  return chosen;
}

/// Rows one after the other, beside gaps, and (-8) with as much at their end as takes them to the
/// next boundary of eight numbers.
std::int64_t margin_of(std::int64_t shape) { return shape % 4 < 3 ? margins[shape % 4] : -8; }

template <class T>
DeviceMatrix<T> placed(const Matrix<T>& values, Device device, std::int64_t margin) {
  if (margin < 0) return DeviceMatrix<T>::filled(values, device, -margin);
  return DeviceMatrix<T>(values, device, margin);
}

/// The loss and its gradient; then the same in place.
template <class T>
void check_loss(const Matrix<T>& logits, const LossTargets& targets, double expected_loss,
                const Matrix<double>& expected, std::int64_t margin, Device device) {
  DeviceMatrix<T> x = placed(logits, device, margin);
  DeviceMatrix<T> gradient = placed(Matrix<T>(logits.rows(), logits.cols(), T{}), device, margin);
  Buffer<double> value(1, default_memory(device));
  const auto run = [&](Operand grad) {
    loss(x, targets, grad, value.data(), {}, test::workspace_on(device));
    double result = -1;
    copy_bytes(&result, value.data(), sizeof(result), device);
    return result;
  };
  const double got = run(gradient);
  EXPECT_NEAR(got, expected_loss, 1e-6 * (1 + expected_loss));
  expect_close("gradient", gradient.values(), expected, 1e-6);
  EXPECT_EQ(run({}), got) << "without a gradient";
  if (logits.rows() > 0 && logits.cols() > 0) {
    DeviceMatrix<T> sums(1, logits.cols(), device, 0);
    loss(x, targets, gradient, value.data(), {}, test::workspace_on(device), sums);
    const Matrix<double> written = to_double(gradient.values());
    Matrix<double> expected_sums(1, logits.cols(), 0.0);
    for (std::int64_t i = 0; i < written.size(); ++i) {
      expected_sums.data()[i % written.cols()] += written.data()[i];
    }
    expect_close("sums", sums.values(), expected_sums, 1e-6);
    expect_close("gradient with sums", gradient.values(), expected, 1e-6);
  }
  EXPECT_EQ(run(x), got) << "in place";
  expect_close("gradient in place", x.values(), expected, 1e-6);
}

TEST_P(Losses, cross_entropy_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 17, 33, 800, 20000}) {
      for (const std::int64_t classes : {1, 2, 3, 7, 16, 22, 41, 47, 64, 100, 257, 1000, 1025}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << classes);
        if (rows * classes > 2000000) continue;
        auto logits = normal_matrix<T>(rows, classes, 1);
        std::vector<std::int64_t> labels;
        for (std::int64_t i = 0; i < rows; ++i) labels.push_back(i % 3 == 1 ? -1 : i % classes);
        for (T& value : logits.span()) value = static_cast<T>(static_cast<float>(value) * 6);
        const auto chosen = some_rows(rows);
        Matrix<double> expected(rows, classes);
        const double expected_loss =
            reference::cross_entropy(to_double(logits), labels, chosen, expected);
        for (const std::int64_t shape : {rows + classes, std::int64_t{3}}) {
          check_loss(logits, LossTargets::classes(labels, chosen, classes, device()), expected_loss,
                     expected, margin_of(shape), device());
        }
        if (rows > 800) continue;
        std::vector<float> weights;
        for (std::int64_t k = 0; k < classes; ++k)
          weights.push_back(0.5f * static_cast<float>(k % 4));
        const LossOptions options{
            classes > 1 ? std::span<const float>(weights) : std::span<const float>(), 0.2};
        const double smoothed =
            reference::cross_entropy(to_double(logits), labels, chosen, expected, options);
        check_loss(logits, LossTargets::classes(labels, chosen, classes, device(), options),
                   smoothed, expected, margin_of(rows + classes), device());
      }
    }
  });
}

TEST_P(Losses, binary_cross_entropy_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 17, 33, 800}) {
      for (const std::int64_t cols : {1, 7, 16, 22, 44, 121, 1025}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols);
        auto logits = normal_matrix<T>(rows, cols, 1);
        Matrix<float> wanted(rows, cols);
        for (T& value : logits.span()) value = static_cast<T>(static_cast<float>(value) * 40);
        for (std::int64_t i = 0; i < wanted.size(); ++i) {
          wanted.data()[i] = i % 3 == 0 ? 1.0f : 0.0f;
        }
        const auto chosen = some_rows(rows);
        Matrix<double> expected(rows, cols);
        const double expected_loss =
            reference::binary_cross_entropy(to_double(logits), wanted, chosen, expected);
        check_loss(logits, LossTargets::binary(wanted, chosen, device()),
                   rows == 0 ? 0 : expected_loss, expected, margin_of(rows + cols), device());
        const double smoothed =
            reference::binary_cross_entropy(to_double(logits), wanted, chosen, expected, 0.2);
        check_loss(logits, LossTargets::binary(wanted, chosen, device(), {{}, 0.2}),
                   rows == 0 ? 0 : smoothed, expected, margin_of(rows + cols), device());
      }
    }
  });
}

/// A number for most elements, none for the others.
Matrix<float> some_numbers(std::int64_t rows, std::int64_t cols) {
  auto wanted = normal_matrix<float>(rows, cols, 2);
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    if (i % 5 == 3) wanted.data()[i] = std::nanf("");
  }
  return wanted;
}

TEST_P(Losses, losses_of_numbers_agree_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 17, 33, 800, 20000}) {
      for (const std::int64_t cols : {1, 2, 3, 7, 16, 22, 44, 121, 1025}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols);
        if (rows * cols > 2000000) continue;
        const auto predicted = normal_matrix<T>(rows, cols, 1);
        const Matrix<float> wanted = some_numbers(rows, cols);
        const auto chosen = some_rows(rows);
        for (const auto kind : {NumberLoss::squared, NumberLoss::absolute, NumberLoss::huber}) {
          SCOPED_TRACE(to_string(kind));
          Matrix<double> expected(rows, cols);
          const double expected_loss =
              reference::number_loss(to_double(predicted), wanted, chosen, kind, expected, 0.7);
          check_loss(predicted, LossTargets::numbers(wanted, chosen, kind, device(), 0.7),
                     expected_loss, expected, margin_of(rows + cols), device());
        }
      }
    }
  });
}

TEST_P(Losses, losses_pass_on_not_a_number_from_chosen_rows_only) {
  with_type_of(precision(), [&]<class T>() {
    auto logits = normal_matrix<T>(4, 3, 1);
    logits(2, 1) = static_cast<T>(std::nanf(""));
    const std::vector<std::int64_t> labels = {0, 1, 2, 0}, all = {0, 1, 2, 3}, good = {0, 1, 3};
    const Matrix<float> none(4, 3, 0.0f);
    DeviceMatrix<T> x(logits, device());
    EXPECT_TRUE(
        std::isnan(cross_entropy(x, labels, all, {}, device(), {}, test::workspace_on(device()))));
    EXPECT_TRUE(std::isfinite(
        cross_entropy(x, labels, good, {}, device(), {}, test::workspace_on(device()))));
    EXPECT_TRUE(std::isnan(
        binary_cross_entropy(x, none, all, {}, device(), {}, test::workspace_on(device()))));
    EXPECT_TRUE(std::isfinite(
        binary_cross_entropy(x, none, good, {}, device(), {}, test::workspace_on(device()))));
  });
}

TEST_P(Losses, losses_of_no_row_are_nothing) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t classes : {1, 3, 22, 41, 1025}) {
      SCOPED_TRACE(classes);
      const std::int64_t rows = 300;
      const auto logits = normal_matrix<T>(rows, classes, 1);
      const std::vector<std::int64_t> labels(rows, -1), none;
      const Matrix<double> zeros(rows, classes, 0.0);
      check_loss(logits, LossTargets::classes(labels, none, classes, device()), 0, zeros,
                 margin_of(3), device());
      check_loss(logits, LossTargets::binary(Matrix<float>(rows, classes, 1.0f), none, device()), 0,
                 zeros, margin_of(0), device());
      const Matrix<float> nothing(rows, classes, std::nanf(""));
      const std::vector<std::int64_t> one = {1};
      for (const auto& chosen : {none, one}) {
        check_loss(logits, LossTargets::numbers(nothing, chosen, NumberLoss::huber, device()), 0,
                   zeros, margin_of(0), device());
      }
    }
  });
}

/// What a row that is not finite gives, whichever lane of a team has the number.
TEST_P(Losses, losses_of_logits_that_are_not_finite) {
  with_type_of(precision(), [&]<class T>() {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const std::int64_t classes : {2, 7, 22, 41, 47, 100, 1025}) {
      for (const std::int64_t place : {std::int64_t{0}, classes / 2, classes - 1}) {
        SCOPED_TRACE(::testing::Message() << classes << " classes, number " << place);
        const std::vector<std::int64_t> all = {0, 1, 2, 3, 4};
        const auto loss_with = [&](float number, std::int64_t label) {
          auto logits = normal_matrix<T>(5, classes, 1);
          logits(3, place) = static_cast<T>(number);
          const std::vector<std::int64_t> labels = {0, 1, 0, label, 1};
          DeviceMatrix<T> x = placed(logits, device(), margin_of(3));
          return cross_entropy(x, labels, all, x, device(), {}, test::workspace_on(device()));
        };
        const std::int64_t other = place == 0 ? 1 : 0;
        EXPECT_TRUE(std::isfinite(loss_with(-infinity, other)));
        EXPECT_EQ(loss_with(-infinity, place), static_cast<double>(infinity));
        EXPECT_TRUE(std::isnan(loss_with(infinity, other)));
        EXPECT_TRUE(std::isnan(loss_with(infinity, place)));
        EXPECT_TRUE(std::isnan(loss_with(std::nanf(""), other)));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Losses, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
