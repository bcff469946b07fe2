// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/batch_norm.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"

#include "ops/batch_norm/reference.hpp"
#include "support/errors.hpp"
#include "support/gradients.hpp"
#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::copy_of;
using test::normal_matrix;
using test::to_double;

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-13;

template <class T>
class BatchNorm : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(0); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BatchNorm, Types);

/// Normal numbers far from 0, as features can be.
template <class T>
Matrix<T> features(std::int64_t rows, std::int64_t cols) {
  auto x = normal_matrix<T>(rows, cols, 1);
  for (T& value : x.span()) value += T{5};
  return x;
}

template <class T>
struct Result {
  Matrix<T> y, mean, inverse_deviation, running_mean, running_variance;
  Matrix<T> grad_x, grad_gamma, grad_beta;
};

template <class T>
Result<T> run_all(const Matrix<T>& x, const Matrix<T>& gamma, const Matrix<T>& beta,
                  const Matrix<T>& grad_y, const BatchNormOptions& options) {
  const std::int64_t cols = x.cols();
  Result<T> result{Matrix<T>(x.rows(), cols), Matrix<T>(1, cols),       Matrix<T>(1, cols),
                   Matrix<T>(1, cols, T{1}),  Matrix<T>(1, cols, T{2}), copy_of(grad_y),
                   Matrix<T>(1, cols),        Matrix<T>(1, cols)};
  batch_norm(x, gamma, beta, options, {result.running_mean, result.running_variance}, result.y,
             result.mean, result.inverse_deviation);
  batch_norm_backward(x, gamma, result.mean, result.inverse_deviation, result.grad_x, result.grad_x,
                      result.grad_gamma, result.grad_beta);
  return result;
}

TYPED_TEST(BatchNorm, AgreesWithTheReference) {
  using T = TypeParam;
  for (const std::int64_t rows : {0, 1, 15, 16, 17, 33, 500}) {
    for (const std::int64_t cols : {1, 7, 16, 33, 257}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      const auto x = features<T>(rows, cols);
      const auto gamma = normal_matrix<T>(1, cols, 2);
      const auto beta = normal_matrix<T>(1, cols, 3);
      const auto grad_y = normal_matrix<T>(rows, cols, 4);
      const BatchNormOptions options;
      const Result<T> got = run_all(x, gamma, beta, grad_y, options);
      Result<double> expected{Matrix<double>(rows, cols),   Matrix<double>(1, cols),
                              Matrix<double>(1, cols),      Matrix<double>(1, cols, 1.0),
                              Matrix<double>(1, cols, 2.0), Matrix<double>(rows, cols),
                              Matrix<double>(1, cols),      Matrix<double>(1, cols)};
      reference::batch_norm(to_double(x), to_double(gamma), to_double(beta), options,
                            expected.running_mean, expected.running_variance, expected.y,
                            expected.mean, expected.inverse_deviation);
      reference::batch_norm_backward(to_double(x), to_double(gamma), expected.mean,
                                     expected.inverse_deviation, to_double(grad_y), expected.grad_x,
                                     expected.grad_gamma, expected.grad_beta);
      // One row has no spread: 1 / sqrt(epsilon) magnifies every rounding by 300.
      const double bound = tolerance<T> * (rows == 1 ? 300 : 1);
      EXPECT_LE(test::largest_difference(got.y, expected.y), bound);
      EXPECT_LE(test::largest_difference(got.mean, expected.mean), bound);
      EXPECT_LE(test::largest_difference(got.inverse_deviation, expected.inverse_deviation), bound);
      EXPECT_LE(test::largest_difference(got.running_mean, expected.running_mean), bound);
      EXPECT_LE(test::largest_difference(got.running_variance, expected.running_variance), bound);
      EXPECT_LE(test::largest_difference(got.grad_x, expected.grad_x), bound);
      EXPECT_LE(test::largest_difference(got.grad_gamma, expected.grad_gamma), 10 * bound);
      EXPECT_LE(test::largest_difference(got.grad_beta, expected.grad_beta), bound);
    }
  }
}

TYPED_TEST(BatchNorm, EvaluationUsesTheRunningStatistics) {
  using T = TypeParam;
  const auto x = features<T>(17, 5);
  const auto gamma = normal_matrix<T>(1, 5, 2);
  const auto beta = normal_matrix<T>(1, 5, 3);
  Matrix<T> mean(1, 5, T{4}), variance(1, 5, T{9}), y(17, 5);
  BatchNormOptions options;
  options.training = false;
  batch_norm(x, gamma, beta, options, {mean, variance}, y, {}, {});
  for (std::int64_t i = 0; i < 17; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      const double expected = static_cast<double>(gamma(0, j)) *
                                  (static_cast<double>(x(i, j)) - 4) / std::sqrt(9 + 1e-5) +
                              static_cast<double>(beta(0, j));
      EXPECT_NEAR(static_cast<double>(y(i, j)), expected, tolerance<T>);
    }
  }
  for (const T value : mean.span()) EXPECT_EQ(value, T{4});
  EXPECT_EQ(test::argument_problem([&] { batch_norm(x, gamma, beta, options, {}, y, {}, {}); }),
            "batch_norm: evaluation needs running statistics");
}

TYPED_TEST(BatchNorm, WithoutGammaAndBetaColumnsHaveMeanZeroAndVarianceOne) {
  using T = TypeParam;
  auto x = features<T>(400, 3);
  batch_norm(x, {}, {}, {}, {}, x, {}, {});
  for (std::int64_t j = 0; j < 3; ++j) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < 400; ++i) {
      sum += static_cast<double>(x(i, j));
      squares += static_cast<double>(x(i, j)) * static_cast<double>(x(i, j));
    }
    EXPECT_NEAR(sum / 400, 0, 1e-6);
    EXPECT_NEAR(squares / 400, 1, 1e-4);
  }
}

TYPED_TEST(BatchNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  using T = TypeParam;
  const auto x = features<T>(5000, 17);
  const auto gamma = normal_matrix<T>(1, 17, 2);
  const auto beta = normal_matrix<T>(1, 17, 3);
  const auto grad_y = normal_matrix<T>(5000, 17, 4);
  set_num_threads(1);
  const Result<T> one = run_all(x, gamma, beta, grad_y, {});
  for (const int threads : {2, 3}) {
    set_num_threads(threads);
    const Result<T> more = run_all(x, gamma, beta, grad_y, {});
    EXPECT_TRUE(test::same_bits(one.y, more.y));
    EXPECT_TRUE(test::same_bits(one.grad_x, more.grad_x));
    EXPECT_TRUE(test::same_bits(one.grad_gamma, more.grad_gamma));
    EXPECT_TRUE(test::same_bits(one.running_variance, more.running_variance));
  }
}

TEST(BatchNorm, GradientsMatchFiniteDifferences) {
  auto x = normal_matrix<double>(7, 3, 51);
  auto gamma = normal_matrix<double>(1, 3, 52);
  auto beta = normal_matrix<double>(1, 3, 53);
  const auto grad_y = normal_matrix<double>(7, 3, 54);
  const Result<double> got = run_all(x, gamma, beta, grad_y, {});
  const auto loss = [&] {
    Matrix<double> y(7, 3);
    batch_norm(x, gamma, beta, {}, {}, y, {}, {});
    return test::inner_product(y, grad_y);
  };
  test::expect_gradient(loss, x, got.grad_x);
  test::expect_gradient(loss, gamma, got.grad_gamma);
  test::expect_gradient(loss, beta, got.grad_beta);
}

TEST(BatchNorm, RejectsWrongOperands) {
  Matrix<float> x(3, 4, 0.0f), gamma(1, 3, 0.0f), y(3, 4);
  EXPECT_EQ(test::argument_problem([&] { batch_norm(x, gamma, {}, {}, {}, y, {}, {}); }),
            "batch_norm: gamma is 1 x 3, expected 1 x 4");
  BatchNormOptions options;
  options.epsilon = 0;
  EXPECT_EQ(test::argument_problem([&] { batch_norm(x, {}, {}, options, {}, y, {}, {}); }),
            "batch_norm: epsilon is 0, expected a number above 0");
}

}  // namespace
}  // namespace tessera::ops
