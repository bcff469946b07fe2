// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/activation.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"

#include "ops/activation/kernels.hpp"
#include "ops/activation/reference.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::argument_problem;
using test::normal_matrix;
using test::to_double;

constexpr Activation activations[] = {Activation::none, Activation::relu, Activation::leaky_relu,
                                      Activation::elu};
constexpr std::int64_t row_counts[] = {0, 1, 15, 16, 17, 31, 33, 200};
constexpr std::int64_t widths[] = {1, 7, 16, 33, 257, 1300};

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-14;

ActivationOptions with(Activation activation, double dropout) {
  ActivationOptions options;
  options.activation = activation;
  options.slope = 0.2;
  options.alpha = 0.7;
  options.dropout = dropout;
  options.random = Random(5, 2, 9);
  return options;
}

template <class T>
class ActivationOp : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(0); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ActivationOp, Types);

template <class T>
void compare_with_reference(std::int64_t rows, std::int64_t cols, const ActivationOptions& options,
                            bool with_bias) {
  SCOPED_TRACE(testing::Message() << rows << " x " << cols << " " << to_string(options.activation)
                                  << " dropout " << options.dropout << " bias " << with_bias);
  const auto x = normal_matrix<T>(rows, cols, 1);
  const auto bias = with_bias ? normal_matrix<T>(1, cols, 2) : Matrix<T>();
  const auto grad_y = normal_matrix<T>(rows, cols, 3);
  test::Padded<T> x_padded(x), y(rows, cols), grad_x(grad_y);
  Matrix<T> grad_bias(1, cols);
  bias_activation_dropout(x_padded.view(), bias, options, y.view());
  // In place: grad_x begins as grad_y.
  bias_activation_dropout_backward(x_padded.view(), bias, options, grad_x.view(), grad_x.view(),
                                   grad_bias);

  Matrix<double> y_expected(rows, cols), grad_x_expected(rows, cols), grad_bias_expected(1, cols);
  const Matrix<double> bias_double = to_double(bias);
  reference::bias_activation_dropout(to_double(x), bias_double, options, y_expected);
  reference::bias_activation_dropout_backward(to_double(x), bias_double, options, to_double(grad_y),
                                              grad_x_expected, grad_bias_expected);
  EXPECT_LE(test::largest_difference(y.view(), y_expected), tolerance<T>);
  EXPECT_LE(test::largest_difference(grad_x.view(), grad_x_expected), tolerance<T>);
  EXPECT_LE(test::largest_difference(grad_bias, grad_bias_expected),
            tolerance<T> * (1 + std::sqrt(static_cast<double>(rows))));
  EXPECT_TRUE(y.margins_intact());
  EXPECT_TRUE(grad_x.margins_intact());
}

TYPED_TEST(ActivationOp, AgreesWithTheReference) {
  for (const std::int64_t rows : row_counts) {
    for (const std::int64_t cols : widths) {
      for (const Activation activation : activations) {
        compare_with_reference<TypeParam>(rows, cols, with(activation, 0), true);
        compare_with_reference<TypeParam>(rows, cols, with(activation, 0.4), cols % 2 == 0);
      }
    }
  }
}

TYPED_TEST(ActivationOp, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto x = normal_matrix<TypeParam>(3000, 33, 1);
  const auto bias = normal_matrix<TypeParam>(1, 33, 2);
  const auto grad_y = normal_matrix<TypeParam>(3000, 33, 3);
  const ActivationOptions options = with(Activation::elu, 0.5);
  Matrix<TypeParam> y_first, grad_x_first, grad_bias_first;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Matrix<TypeParam> y(3000, 33), grad_x(3000, 33), grad_bias(1, 33);
    bias_activation_dropout(x, bias, options, y);
    bias_activation_dropout_backward(x, bias, options, grad_y, grad_x, grad_bias);
    if (threads > 1) {
      EXPECT_TRUE(test::same_bits(y_first, y));
      EXPECT_TRUE(test::same_bits(grad_x_first, grad_x));
      EXPECT_TRUE(test::same_bits(grad_bias_first, grad_bias));
    }
    y_first = std::move(y);
    grad_x_first = std::move(grad_x);
    grad_bias_first = std::move(grad_bias);
  }
}

TYPED_TEST(ActivationOp, PassesNotANumberOn) {
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const auto infinity = std::numeric_limits<TypeParam>::infinity();
  for (const Activation activation : activations) {
    SCOPED_TRACE(to_string(activation));
    Matrix<TypeParam> x(1, 3, nan), y(1, 3);
    x(0, 1) = infinity;
    x(0, 2) = -infinity;
    bias_activation_dropout(x, Matrix<TypeParam>(), with(activation, 0), y);
    Matrix<double> expected(1, 3);
    reference::bias_activation_dropout(to_double(x), {}, with(activation, 0), expected);
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(std::isnan(y(0, j)), std::isnan(expected(0, j)));
      if (std::isnan(expected(0, j))) continue;
      EXPECT_EQ(y(0, j), static_cast<TypeParam>(expected(0, j)));
    }
  }
}

TEST(ActivationOp, KeepsTheShareItShould) {
  Matrix<float> x(1000, 100, 1.0f), y(1000, 100);
  bias_activation_dropout(x, ConstOperand(), with(Activation::none, 0.25), y);
  std::int64_t kept = 0;
  for (const float value : y.span()) {
    if (value == 0) continue;
    EXPECT_FLOAT_EQ(value, 1 / 0.75f);
    ++kept;
  }
  // Six standard deviations of a binomial count.
  EXPECT_NEAR(static_cast<double>(kept), 75000, 6 * std::sqrt(100000 * 0.25 * 0.75));
}

TEST(ActivationOp, EveryInstructionSetAgrees) {
  const auto x = normal_matrix<float>(20, 37, 1);
  const Buffer<float> bias(37, 0.25f);
  for (const Activation activation : activations) {
    ActivationFormula formula{activation, 0.2, 0.7, true, Dropout{0.3, Random(1)}.constants()};
    Matrix<float> expected(20, 37), got(20, 37);
    ActivationRows<float> rows;
    rows.rows = 20;
    rows.cols = 37;
    rows.x = x.data();
    rows.x_stride = 37;
    rows.bias = bias.data();
    rows.output_stride = 37;
    rows.output = expected.data();
    ops::activation(Isa::baseline).fp32.forward(formula, rows);
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(to_string(isa));
      rows.output = got.data();
      ops::activation(isa).fp32.forward(formula, rows);
      EXPECT_LE(test::largest_difference(got, to_double(expected)), 1e-6);
    }
  }
}

TEST(ActivationOp, GradientsMatchFiniteDifferences) {
  for (const Activation activation : activations) {
    SCOPED_TRACE(to_string(activation));
    const ActivationOptions options = with(activation, 0.3);
    auto x = normal_matrix<double>(9, 5, 31);
    auto bias = normal_matrix<double>(1, 5, 32);
    const auto grad_y = normal_matrix<double>(9, 5, 33);
    Matrix<double> grad_x(9, 5), grad_bias(1, 5);
    bias_activation_dropout_backward(x, bias, options, grad_y, grad_x, grad_bias);
    const auto loss = [&] {
      Matrix<double> y(9, 5);
      bias_activation_dropout(x, bias, options, y);
      return test::inner_product(y, grad_y);
    };
    test::expect_gradient(loss, x, grad_x);
    test::expect_gradient(loss, bias, grad_bias);
  }
}

TEST(ActivationOp, NamesParse) {
  for (const Activation activation : activations) {
    EXPECT_EQ(parse_activation(to_string(activation)), activation);
  }
  EXPECT_THAT(argument_problem([] { parse_activation("swish"); }),
              testing::HasSubstr("none, relu, leaky_relu, elu"));
}

TEST(ActivationOp, RejectsWrongOperands) {
  Matrix<float> x(3, 4, 0.0f), bias(1, 3, 0.0f), y(3, 4);
  const ActivationOptions options;
  EXPECT_EQ(argument_problem([&] { bias_activation_dropout(x, bias, options, y); }),
            "bias_activation_dropout: bias is 1 x 3, expected 1 x 4");
  ActivationOptions wrong = options;
  wrong.dropout = 1.5;
  EXPECT_EQ(argument_problem([&] { bias_activation_dropout(x, ConstOperand(), wrong, y); }),
            "bias_activation_dropout: dropout is 1.5, expected 0 to 1");
  const MatrixView<float> shifted(x.data() + 1, 2, 4, 4);
  const MatrixView<float> top(x.data(), 2, 4, 4);
  EXPECT_THAT(argument_problem([&] { bias_activation_dropout(top, {}, options, shifted); }),
              testing::HasSubstr("y shares memory with x"));
}

TYPED_TEST(ActivationOp, RowNormaliseAgreesWithTheReference) {
  for (const std::int64_t rows : row_counts) {
    for (const std::int64_t cols : widths) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      auto x = normal_matrix<TypeParam>(rows, cols, 1);
      // A row of zeros has no direction.
      if (rows > 2) std::fill_n(x.row(2), cols, TypeParam{0});
      const auto grad_y = normal_matrix<TypeParam>(rows, cols, 2);
      test::Padded<TypeParam> y(x), grad_x(grad_y);
      row_normalise(y.view(), y.view());
      row_normalise_backward(x, grad_x.view(), grad_x.view(), 1e-3);
      Matrix<double> y_expected(rows, cols), grad_x_expected(rows, cols);
      reference::row_normalise(to_double(x), 1e-12, y_expected);
      reference::row_normalise_backward(to_double(x), to_double(grad_y), 1e-3, grad_x_expected);
      EXPECT_LE(test::largest_difference(y.view(), y_expected), tolerance<TypeParam>);
      EXPECT_LE(test::largest_difference(grad_x.view(), grad_x_expected),
                10 * tolerance<TypeParam>);
      EXPECT_TRUE(y.margins_intact());
    }
  }
}

TEST(ActivationOp, RowNormaliseGradientMatchesFiniteDifferences) {
  auto x = normal_matrix<double>(6, 5, 41);
  // Shorter than epsilon.
  for (std::int64_t j = 0; j < 5; ++j) x(3, j) *= 1e-3;
  const auto grad_y = normal_matrix<double>(6, 5, 42);
  Matrix<double> grad_x(6, 5);
  row_normalise_backward(x, grad_y, grad_x, 0.1);
  const auto loss = [&] {
    Matrix<double> y(6, 5);
    row_normalise(x, y, 0.1);
    return test::inner_product(y, grad_y);
  };
  test::expect_gradient(loss, x, grad_x);
}

}  // namespace
}  // namespace tessera::ops
