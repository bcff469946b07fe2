// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "ops/batch_norm/reference.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/dropout.hpp"

/// Batch norm on every device and in every precision against the reference.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

constexpr std::int64_t row_counts[] = {0, 1, 15, 17, 33, 500};

class BatchNorms : public test::DenseTest {};

/// What belongs to a column is never stored in 16 bits.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Matrix<T> far_from_zero(std::int64_t rows, std::int64_t cols) {
  auto x = normal_matrix<float>(rows, cols, 1);
  Matrix<T> result(rows, cols);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    result.data()[i] = static_cast<T>(x.data()[i] + 5.0f);
  }
  return result;
}

template <class T>
void check_batch_norm(std::int64_t rows, std::int64_t cols, std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " margin " << margin);
  using W = Wide<T>;
  const auto x = far_from_zero<T>(rows, cols);
  const auto gamma = normal_matrix<W>(1, cols, 2);
  const auto beta = normal_matrix<W>(1, cols, 3);
  const auto grad_y = normal_matrix<T>(rows, cols, 4);
  DeviceMatrix<T> from(x, device, margin), y(rows, cols, device, margin);
  DeviceMatrix<T> grad_x(grad_y, device, margin);
  DeviceMatrix<W> g(gamma, device, 0), b(beta, device, 0), mean(1, cols, device, 0);
  DeviceMatrix<W> deviation(1, cols, device, 0), grad_g(1, cols, device, 0);
  DeviceMatrix<W> grad_b(1, cols, device, 0), running(Matrix<W>(1, cols, W{1}), device, 0);
  DeviceMatrix<W> spread(Matrix<W>(1, cols, W{2}), device, 0);
  const BatchNormOptions options;
  batch_norm(from, g, b, options, {running, spread}, y, mean, deviation, device, {},
             test::workspace_on(device));
  batch_norm_backward(from, g, mean, deviation, grad_x, grad_x, grad_g, grad_b, device, {},
                      test::workspace_on(device));

  Matrix<double> y_expected(rows, cols), grad_x_expected(rows, cols), mean_expected(1, cols);
  Matrix<double> deviation_expected(1, cols), running_expected(1, cols, 1.0);
  Matrix<double> spread_expected(1, cols, 2.0), grad_g_expected(1, cols), grad_b_expected(1, cols);
  reference::batch_norm(to_double(x), to_double(gamma), to_double(beta), options, running_expected,
                        spread_expected, y_expected, mean_expected, deviation_expected);
  reference::batch_norm_backward(to_double(x), to_double(gamma), mean_expected, deviation_expected,
                                 to_double(grad_y), grad_x_expected, grad_g_expected,
                                 grad_b_expected);
  // One row has no spread: 1 / sqrt(epsilon) magnifies every rounding by 300.
  const double bound = rows == 1 ? 3e-3 : 1e-5;
  const double sums = 1 + std::sqrt(static_cast<double>(rows));
  expect_close("y", y.values(), y_expected, bound, rows == 1 ? 300 : 1);
  expect_close("mean", mean.values(), mean_expected, bound);
  expect_close("deviation", deviation.values(), deviation_expected, bound);
  expect_close("running mean", running.values(), running_expected, bound);
  expect_close("running variance", spread.values(), spread_expected, bound);
  expect_close("grad_x", grad_x.values(), grad_x_expected, bound, rows == 1 ? 300 : 1);
  expect_close("grad_gamma", grad_g.values(), grad_g_expected, bound, 10 * sums);
  expect_close("grad_beta", grad_b.values(), grad_b_expected, bound, sums);
}

TEST_P(BatchNorms, batch_norm_agrees_with_the_reference) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t cols : {1, 7, 16, 33, 257}) {
        check_batch_norm<T>(rows, cols, margins[(rows + cols) % 3], device());
      }
    }
    check_batch_norm<T>(40000, 64, 0, device());
  });
}

/// Where the rows fill a block, the blocks of a cluster, or no longer one cluster.
TEST_P(BatchNorms, batch_norm_at_the_edges_of_its_cuts) {
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {64, 65, 255, 256, 257, 511, 513, 2708, 4097}) {
      for (const std::int64_t cols : {1, 3, 8, 16, 24, 65}) {
        check_batch_norm<T>(rows, cols, margins[(rows + cols) % 3], device());
      }
    }
    for (const std::int64_t rows : {8192, 8193}) {
      check_batch_norm<T>(rows, 5, 0, device());
      check_batch_norm<T>(rows, 16, 8, device());
    }
  });
}

/// The bits are the same twice, and whether the result takes the place of what was read or not.
TEST_P(BatchNorms, batch_norm_is_the_same_bits_twice) {
  with_type_of(precision(), [&]<class T>() {
    using W = Wide<T>;
    for (const std::int64_t rows : {1, 700, 20000}) {
      for (const std::int64_t cols : {7, 16}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols);
        const auto x = far_from_zero<T>(rows, cols), slopes = normal_matrix<T>(rows, cols, 4);
        DeviceMatrix<W> mean(1, cols, device(), 0), deviation(1, cols, device(), 0);
        DeviceMatrix<W> grad_g(1, cols, device(), 0), grad_b(1, cols, device(), 0);
        DeviceMatrix<T> from(x, device(), 0), grad_y(slopes, device(), 0);
        const auto run = [&](DeviceMatrix<T>& y, DeviceMatrix<T>& read, DeviceMatrix<T>& grad_x,
                             DeviceMatrix<T>& given) {
          batch_norm(read, {}, {}, {}, {}, y, mean, deviation, device(), {},
                     test::workspace_on(device()));
          batch_norm_backward(from, {}, mean, deviation, given, grad_x, grad_g, grad_b, device(),
                              {}, test::workspace_on(device()));
        };
        DeviceMatrix<T> y(rows, cols, device(), 0), grad_x(rows, cols, device(), 0);
        run(y, from, grad_x, grad_y);
        const Matrix<W> sums = grad_g.values();
        DeviceMatrix<T> both(x, device(), 0), both_gradients(slopes, device(), 0);
        run(both, both, both_gradients, both_gradients);
        EXPECT_TRUE(test::same_bits(y.values(), both.values()));
        EXPECT_TRUE(test::same_bits(grad_x.values(), both_gradients.values()));
        EXPECT_TRUE(test::same_bits(sums, grad_g.values()));
      }
    }
  });
}

/// The activation at z and its derivative there.
std::pair<double, double> activated(const ActivationOptions& options, double z) {
  switch (options.activation) {
    case Activation::relu: return {z > 0 ? z : 0, z > 0 ? 1 : 0};
    case Activation::leaky_relu: return {z > 0 ? z : options.slope * z, z > 0 ? 1 : options.slope};
    case Activation::elu:
      return {z > 0 ? z : options.alpha * std::expm1(z), z > 0 ? 1 : options.alpha * std::exp(z)};
    default: return {z, 1};
  }
}

/// Batch norm between a bias and an activation with dropout. Elements so near to 0 that rounding
/// decides on which side of the activation they are have no gradient.
template <class T>
void check_surrounded(std::int64_t rows, std::int64_t cols, const ActivationOptions& activation,
                      std::int64_t margin, Device device) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << cols << " margin " << margin << " "
                                    << to_string(activation.activation));
  using W = Wide<T>;
  const auto x = far_from_zero<T>(rows, cols);
  const auto bias = normal_matrix<T>(1, cols, 6);
  const auto gamma = normal_matrix<W>(1, cols, 2), beta = normal_matrix<W>(1, cols, 3);
  auto grad_y = normal_matrix<T>(rows, cols, 4);
  Matrix<double> shifted = to_double(x);
  for (std::int64_t i = 0; i < shifted.size(); ++i) {
    shifted.data()[i] += static_cast<double>(bias(0, i % cols));
  }
  Matrix<double> expected(rows, cols), grad_x_expected(rows, cols), mean_expected(1, cols);
  Matrix<double> deviation_expected(1, cols), running_expected(1, cols, 1.0);
  Matrix<double> spread_expected(1, cols, 2.0), shift_expected(1, cols, 0.0);
  Matrix<double> grad_g_expected(1, cols), grad_b_expected(1, cols);
  reference::batch_norm(shifted, to_double(gamma), to_double(beta), {}, running_expected,
                        spread_expected, expected, mean_expected, deviation_expected);
  Matrix<double> slopes(rows, cols);
  const Dropout dropout{activation.dropout, activation.random, nullptr};
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    double& value = expected.data()[i];
    if (std::abs(value) < 1e-4) grad_y.data()[i] = static_cast<T>(0.0f);
    const double factor = dropout.factor(static_cast<std::uint64_t>(i));
    const auto [result, slope] = activated(activation, value);
    value = factor * result;
    slopes.data()[i] = factor * slope * static_cast<double>(grad_y.data()[i]);
  }
  reference::batch_norm_backward(shifted, to_double(gamma), mean_expected, deviation_expected,
                                 slopes, grad_x_expected, grad_g_expected, grad_b_expected);
  for (std::int64_t i = 0; i < grad_x_expected.size(); ++i) {
    shift_expected.data()[i % cols] += grad_x_expected.data()[i];
  }

  DeviceMatrix<T> from(x, device, margin), y(rows, cols, device, margin), shift(bias, device, 0);
  DeviceMatrix<T> grad_x(grad_y, device, margin), grad_shift(1, cols, device, 0);
  DeviceMatrix<T> grad_alone(grad_y, device, margin);
  DeviceMatrix<W> g(gamma, device, 0), b(beta, device, 0), mean(1, cols, device, 0);
  DeviceMatrix<W> deviation(1, cols, device, 0), grad_g(1, cols, device, 0);
  DeviceMatrix<W> grad_b(1, cols, device, 0);
  DeviceMatrix<W> running(Matrix<W>(1, cols, W{1}), device),
      spread(Matrix<W>(1, cols, W{2}), device);
  const DenseWorkspace* const workspace = test::workspace_on(device);
  batch_norm(from, g, b, {}, {running, spread}, y, mean, deviation, device, {}, workspace,
             activation, shift);
  batch_norm_backward(from, g, mean, deviation, grad_x, grad_x, grad_g, grad_b, device, {},
                      workspace, {activation, b, grad_shift});
  batch_norm_backward(from, g, mean, deviation, grad_alone, grad_alone, {}, {}, device, {},
                      workspace, {activation, b, {}});
  const double bound = rows == 1 ? 3e-3 : 1e-5;
  const double sums = 1 + std::sqrt(static_cast<double>(rows));
  expect_close("y", y.values(), expected, bound, rows == 1 ? 300 : 1);
  expect_close("running mean", running.values(), running_expected, 1e-5);
  expect_close("running variance", spread.values(), spread_expected, 1e-5);
  expect_close("grad_x", grad_x.values(), grad_x_expected, bound, rows == 1 ? 300 : 1);
  expect_close("grad_x alone", grad_alone.values(), grad_x_expected, bound, rows == 1 ? 300 : 1);
  expect_close("grad_gamma", grad_g.values(), grad_g_expected, bound, 10 * sums);
  expect_close("grad_beta", grad_b.values(), grad_b_expected, bound, sums);
  expect_close("grad_shift", grad_shift.values(), shift_expected, bound,
               rows == 1 ? 300 : 10 * sums);
}

TEST_P(BatchNorms, batch_norm_with_what_surrounds_it) {
  ActivationOptions relu, leaky, dropped, alone, elu;
  relu.activation = dropped.activation = Activation::relu;
  elu.activation = Activation::elu;
  leaky.activation = Activation::leaky_relu;
  leaky.slope = 0.2;
  dropped.dropout = alone.dropout = leaky.dropout = 0.4;
  dropped.random = leaky.random = alone.random = Random(7, 3, 11);
  with_type_of(precision(), [&]<class T>() {
    for (const std::int64_t rows : {0, 1, 15, 16, 17, 31, 33, 500}) {
      for (const std::int64_t cols : {1, 7, 16, 33, 257}) {
        for (const ActivationOptions& activation : {relu, leaky, dropped, alone, elu}) {
          check_surrounded<T>(rows, cols, activation, margins[(rows + cols) % 3], device());
        }
      }
    }
    check_surrounded<T>(20000, 64, dropped, 0, device());
  });
}

TEST_P(BatchNorms, batch_norm_needs_room_for_the_gradient_behind_an_activation) {
  if (precision() != Precision::fp32) return;
  DeviceMatrix<float> x(4, 3, device()), grad(4, 3, device());
  DeviceMatrix<float> mean(1, 3, device(), 0), deviation(1, 3, device(), 0);
  BatchNormSurroundings around;
  around.activation.activation = Activation::relu;
  EXPECT_THROW(batch_norm_backward(x, {}, mean, deviation, grad, {}, {}, {}, device(), {},
                                   test::workspace_on(device()), around),
               Error);
}

TEST_P(BatchNorms, batch_norm_evaluates_with_the_running_statistics) {
  with_type_of(precision(), [&]<class T>() {
    using W = Wide<T>;
    const auto x = far_from_zero<T>(17, 5);
    DeviceMatrix<T> from(x, device());
    DeviceMatrix<W> mean(Matrix<W>(1, 5, W{4}), device()), spread(Matrix<W>(1, 5, W{9}), device());
    BatchNormOptions options;
    options.training = false;
    batch_norm(from, {}, {}, options, {mean, spread}, from, {}, {}, device(), {},
               test::workspace_on(device()));
    Matrix<double> expected(17, 5);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      expected.data()[i] = (static_cast<double>(x.data()[i]) - 4) / std::sqrt(9 + 1e-5);
    }
    expect_close("y", from.values(), expected, 1e-6);
    const Matrix<W> kept = mean.values();
    for (const W value : kept.span()) EXPECT_EQ(value, W{4});
    // A bias of 1 before it.
    DeviceMatrix<T> again(x, device()), shift(Matrix<T>(1, 5, static_cast<T>(1.0f)), device());
    batch_norm(again, {}, {}, options, {mean, spread}, again, {}, {}, device(), {},
               test::workspace_on(device()), {}, shift);
    for (double& value : expected.span()) value += 1 / std::sqrt(9 + 1e-5);
    expect_close("y of biased x", again.values(), expected, 1e-6);
  });
}

/// Squares of distances pass fp32's range, and a first row that lies far off must not take the
/// digits of the others.
TEST_P(BatchNorms, batch_norm_of_large_numbers_and_of_a_far_first_row) {
  with_type_of(precision(), [&]<class T>() {
    using W = Wide<T>;
    const bool has_range = !std::is_same_v<T, Float16>;
    for (const std::int64_t rows : {3000, 40000}) {
      Matrix<T> x(rows, 8);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = 0; col < 8; ++col) {
          const float large = has_range ? 2e19f : 2e4f;
          const float value = col % 2 == 0 ? large * static_cast<float>(row % 3)
                              : row == 0   ? 1000.0f
                                           : 1.0078125f;
          x(row, col) = static_cast<T>(value);
        }
      }
      DeviceMatrix<T> from(x, device(), 0), y(rows, 8, device(), 0);
      DeviceMatrix<W> mean(1, 8, device(), 0), deviation(1, 8, device(), 0);
      batch_norm(from, {}, {}, {}, {}, y, mean, deviation, device(), {},
                 test::workspace_on(device()));
      Matrix<double> expected(rows, 8), mean_expected(1, 8), deviation_expected(1, 8);
      Matrix<double> running(1, 8), spread(1, 8);
      reference::batch_norm(to_double(x), Matrix<double>(1, 8, 1.0), Matrix<double>(1, 8, 0.0), {},
                            running, spread, expected, mean_expected, deviation_expected);
      expect_close("y", y.values(), expected, 1e-5, std::sqrt(static_cast<double>(rows)));
      for (std::int64_t col = 0; col < 8; ++col) {
        EXPECT_NEAR(static_cast<double>(deviation.values()(0, col)) / deviation_expected(0, col), 1,
                    1e-5)
            << "column " << col << " of " << rows << " rows";
      }
    }
  });
}

TEST_P(BatchNorms, batch_norm_passes_on_what_is_not_finite) {
  with_type_of(precision(), [&]<class T>() {
    using W = Wide<T>;
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      for (const std::int64_t row : {0, 9}) {
        auto x = far_from_zero<T>(20, 3);
        x(row, 1) = static_cast<T>(bad);
        DeviceMatrix<T> from(x, device()), y(20, 3, device());
        DeviceMatrix<W> mean(1, 3, device(), 0), deviation(1, 3, device(), 0);
        batch_norm(from, {}, {}, {}, {}, y, mean, deviation, device(), {},
                   test::workspace_on(device()));
        const Matrix<T> result = y.values();
        for (std::int64_t i = 0; i < result.size(); ++i) {
          EXPECT_EQ(std::isnan(static_cast<double>(result.data()[i])), i % 3 == 1);
        }
        DeviceMatrix<T> grad(Matrix<T>(20, 3, static_cast<T>(1.0f)), device());
        DeviceMatrix<T> grad_shift(1, 3, device(), 0);
        BatchNormSurroundings around;
        around.grad_shift = grad_shift;
        batch_norm_backward(from, {}, mean, deviation, grad, grad, {}, {}, device(), {},
                            test::workspace_on(device()), around);
        const Matrix<T> of_bias = grad_shift.values();
        for (std::int64_t j = 0; j < 3; ++j) {
          EXPECT_EQ(std::isnan(static_cast<double>(of_bias(0, j))), j == 1);
        }
        const auto got = static_cast<double>(mean.values()(0, 1));
        EXPECT_TRUE(std::isnan(bad) ? std::isnan(got) : std::isinf(got)) << got;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, BatchNorms, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
