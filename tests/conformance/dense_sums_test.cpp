// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/batch_norm/reference.hpp"
#include "ops/loss/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_shapes.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/heads.hpp"
#include "tessera/ops/loss.hpp"

/// Dense ops that add over rows and columns, on every device, against the references.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

constexpr std::int64_t row_counts[] = {0, 1, 15, 17, 33, 500};

class DenseSums : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
};

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

TEST_P(DenseSums, batch_norm_agrees_with_the_reference) {
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
TEST_P(DenseSums, batch_norm_at_the_edges_of_its_cuts) {
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
TEST_P(DenseSums, batch_norm_is_the_same_bits_twice) {
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

TEST_P(DenseSums, batch_norm_with_what_surrounds_it) {
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

TEST_P(DenseSums, batch_norm_needs_room_for_the_gradient_behind_an_activation) {
  if (precision() != Precision::fp32) return;
  DeviceMatrix<float> x(4, 3, device()), grad(4, 3, device());
  DeviceMatrix<float> mean(1, 3, device(), 0), deviation(1, 3, device(), 0);
  BatchNormSurroundings around;
  around.activation.activation = Activation::relu;
  EXPECT_THROW(batch_norm_backward(x, {}, mean, deviation, grad, {}, {}, {}, device(), {},
                                   test::workspace_on(device()), around),
               Error);
}

TEST_P(DenseSums, batch_norm_evaluates_with_the_running_statistics) {
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
TEST_P(DenseSums, batch_norm_of_large_numbers_and_of_a_far_first_row) {
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

TEST_P(DenseSums, batch_norm_passes_on_what_is_not_finite) {
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

struct Heads {
  std::int64_t rows, heads, width;
};
constexpr Heads head_shapes[] = {{0, 2, 3},  {1, 1, 1}, {17, 8, 8},  {33, 3, 7},
                                 {5, 1, 64}, {4, 6, 1}, {90, 2, 40}, {3000, 8, 8}};

template <class T>
void check_head_dot(const Heads& shape, std::int64_t margin, Device device) {
  const auto [rows, heads, width] = shape;
  SCOPED_TRACE(::testing::Message()
               << rows << " x " << heads << " x " << width << " margin " << margin);
  const auto x = normal_matrix<T>(rows, heads * width, 1);
  const auto vector = normal_matrix<T>(1, heads * width, 2);
  const auto grad_y = normal_matrix<T>(rows, heads, 3);
  const auto before = normal_matrix<T>(rows, heads * width, 4);
  DeviceMatrix<T> from(x, device, margin), by(vector, device, 0), y(rows, heads, device, margin);
  DeviceMatrix<T> slope(grad_y, device, margin), grad_x(before, device, margin);
  DeviceMatrix<T> alone(before, device, margin), grad_vector(1, heads * width, device, 0);
  head_dot(from, by, y, device);
  head_dot_backward(from, by, slope, grad_x, grad_vector, device, {}, test::workspace_on(device));
  head_dot_backward(from, by, slope, alone, {}, device, {}, test::workspace_on(device));
  Matrix<double> y_expected(rows, heads, 0.0), grad_x_expected(rows, heads * width);
  Matrix<double> grad_vector_expected(1, heads * width, 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < heads * width; ++k) {
      const auto value = static_cast<double>(x(i, k)), weight = static_cast<double>(vector(0, k));
      const auto gradient = static_cast<double>(grad_y(i, k / width));
      y_expected(i, k / width) += value * weight;
      grad_vector_expected(0, k) += gradient * value;
      grad_x_expected(i, k) = static_cast<double>(before(i, k)) + gradient * weight;
    }
  }
  expect_close("y", y.values(), y_expected, 1e-6, static_cast<double>(width));
  expect_close("grad_x", grad_x.values(), grad_x_expected, 1e-6, 4);
  expect_close("grad_x alone", alone.values(), grad_x_expected, 1e-6, 4);
  expect_close("grad_vector", grad_vector.values(), grad_vector_expected, 1e-6,
               1 + std::sqrt(static_cast<double>(rows)));
}

/// Two vectors at once against one after the other.
template <class T>
void check_head_dots(const Heads& shape, std::int64_t margin, Device device) {
  const auto [rows, heads, width] = shape;
  SCOPED_TRACE(::testing::Message()
               << rows << " x " << heads << " x " << width << " margin " << margin);
  const std::int64_t cols = heads * width;
  const auto x = normal_matrix<T>(rows, cols, 1), before = normal_matrix<T>(rows, cols, 4);
  const Matrix<T> vectors[] = {normal_matrix<T>(1, cols, 2), normal_matrix<T>(1, cols, 5)};
  const Matrix<T> slopes[] = {normal_matrix<T>(rows, heads, 3), normal_matrix<T>(rows, heads, 6)};
  DeviceMatrix<T> from(x, device, margin), grad_x(before, device, margin);
  DeviceMatrix<T> first(vectors[0], device, 0), second(vectors[1], device, 0);
  DeviceMatrix<T> of_first(rows, heads, device, margin), of_second(rows, heads, device, margin);
  DeviceMatrix<T> grad_of_first(slopes[0], device, margin);
  DeviceMatrix<T> grad_of_second(slopes[1], device, margin);
  DeviceMatrix<T> grad_first(1, cols, device, 0), grad_second(1, cols, device, 0);
  head_dots(from, first, second, of_first, of_second, device);
  head_dots_backward(from, first, second, grad_of_first, grad_of_second, grad_x, grad_first,
                     grad_second, device, {}, test::workspace_on(device));
  Matrix<double> grad_x_expected = to_double(before);
  for (int v = 0; v < 2; ++v) {
    Matrix<double> y_expected(rows, heads, 0.0), grad_vector_expected(1, cols, 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < cols; ++k) {
        const auto value = static_cast<double>(x(i, k));
        const auto weight = static_cast<double>(vectors[v](0, k));
        const auto gradient = static_cast<double>(slopes[v](i, k / width));
        y_expected(i, k / width) += value * weight;
        grad_vector_expected(0, k) += gradient * value;
        grad_x_expected(i, k) += gradient * weight;
      }
    }
    expect_close("y", (v == 0 ? of_first : of_second).values(), y_expected, 1e-6,
                 static_cast<double>(width));
    expect_close("grad_vector", (v == 0 ? grad_first : grad_second).values(), grad_vector_expected,
                 1e-6, 1 + std::sqrt(static_cast<double>(rows)));
  }
  expect_close("grad_x", grad_x.values(), grad_x_expected, 1e-6, 8);
}

template <class T>
void check_head_mean(const Heads& shape, std::int64_t margin, Device device) {
  const auto [rows, heads, width] = shape;
  SCOPED_TRACE(::testing::Message()
               << rows << " x " << heads << " x " << width << " margin " << margin);
  const auto x = normal_matrix<T>(rows, heads * width, 1);
  const auto grad_y = normal_matrix<T>(rows, width, 3);
  DeviceMatrix<T> from(x, device, margin), y(rows, width, device, margin);
  DeviceMatrix<T> slope(grad_y, device, margin), grad_x(rows, heads * width, device, margin);
  head_mean(from, y, device);
  head_mean_backward(slope, grad_x, device);
  Matrix<double> y_expected(rows, width, 0.0), grad_x_expected(rows, heads * width);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < heads * width; ++k) {
      const auto share = 1 / static_cast<double>(heads);
      y_expected(i, k % width) += share * static_cast<double>(x(i, k));
      grad_x_expected(i, k) = share * static_cast<double>(grad_y(i, k % width));
    }
  }
  expect_close("y", y.values(), y_expected, 1e-6);
  expect_close("grad_x", grad_x.values(), grad_x_expected, 1e-6);
}

TEST_P(DenseSums, heads_agree_with_plain_loops) {
  with_type_of(precision(), [&]<class T>() {
    for (const Heads& shape : head_shapes) {
      for (const std::int64_t margin : margins) {
        check_head_dot<T>(shape, margin, device());
        check_head_dots<T>(shape, margin, device());
        check_head_mean<T>(shape, margin, device());
      }
    }
  });
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

TEST_P(DenseSums, cross_entropy_agrees_with_the_reference) {
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
      }
    }
  });
}

TEST_P(DenseSums, binary_cross_entropy_agrees_with_the_reference) {
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
      }
    }
  });
}

TEST_P(DenseSums, losses_pass_on_not_a_number_from_chosen_rows_only) {
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

TEST_P(DenseSums, losses_of_no_row_are_nothing) {
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
    }
  });
}

/// What a row that is not finite gives, whichever lane of a team has the number.
TEST_P(DenseSums, losses_of_logits_that_are_not_finite) {
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

INSTANTIATE_TEST_SUITE_P(Backends, DenseSums, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
