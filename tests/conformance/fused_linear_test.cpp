// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/gemm_check.hpp"
#include "support/matrices.hpp"
#include "support/summed_product.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/linear.hpp"

/// Dense layers that do the work of the batch norms around them, on every device.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::normal_matrix;
using test::SummedProduct;
using test::with_type_of;

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

class FusedLinear : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
  /// Not all types have kernels on a GPU.
  bool fuses(std::int64_t rows, std::int64_t in, std::int64_t out) const {
    return linear_fuses(device(), storage_of(precision()), rows, in, out);
  }
};

struct Shape {
  std::int64_t rows, in, out;
  bool relu;
  std::int64_t margin;
};

template <class T>
void expect_agreement(const char* what, const Matrix<T>& computed, const SummedProduct& expected) {
  testing::Tolerance tolerance = testing::tolerance_of(PrecisionOf<T>::value);
  // What is read may be rounded another way where it lies between two numbers.
  tolerance.of_magnitude += tolerance.of_result;
  EXPECT_EQ(
      testing::first_mismatch(computed.view(), expected.values, expected.magnitude, tolerance), "")
      << what;
}

/// What a batch norm would write.
template <class T>
Matrix<double> normalised(const Matrix<T>& x, const Matrix<WideOf<T>>& columns, bool relu) {
  Matrix<double> result(x.rows(), x.cols());
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      const auto value = static_cast<WideOf<T>>(x(i, j));
      const WideOf<T> z = (value - columns(j, 0)) * columns(j, 1) + columns(j, 2);
      result(i, j) = static_cast<double>(T(relu && z <= 0 ? WideOf<T>{0} : z));
    }
  }
  return result;
}

template <class T>
void expect_moments(const Matrix<T>& y, const Matrix<double>& moments) {
  const auto count = static_cast<double>(y.rows());
  for (std::int64_t j = 0; j < y.cols(); ++j) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < y.rows(); ++i) mean += static_cast<double>(y(i, j)) / count;
    for (std::int64_t i = 0; i < y.rows(); ++i) {
      variance += std::pow(static_cast<double>(y(i, j)) - mean, 2) / count;
    }
    const double distance = moments(1, j) / count;
    const double found = moments(2, j) / count - distance * distance;
    EXPECT_NEAR(moments(0, j) + distance, mean, 1e-6 * (std::abs(mean) + std::sqrt(variance)))
        << "column " << j;
    EXPECT_NEAR(found, variance, 3e-6 * variance) << "column " << j;
  }
}

template <class T>
void check_forward(const Shape& shape, Device device) {
  const auto& [rows, in, out, relu, margin] = shape;
  const auto x = normal_matrix<T>(rows, in, 1);
  const auto weight = normal_matrix<T>(out, in, 2);
  const auto bias = normal_matrix<T>(1, out, 3);
  const auto numbers = normal_matrix<WideOf<T>>(in, 4, 5);
  DeviceMatrix<T> from(x, device, margin), w(weight, device, margin), b(bias, device, 0);
  DeviceMatrix<T> y(rows, out, device, margin);
  DeviceMatrix<WideOf<T>> columns(numbers, device, 0);
  DeviceMatrix<double> moments(3, out, device, margin);
  LinearSurroundings around{columns, relu, moments};
  const auto run = [&] {
    linear(from, w, b, y, device, {}, test::workspace_on(device), Precision::fp32, around);
  };
  run();
  const Matrix<double> read = normalised(x, numbers, relu);
  SummedProduct expected(rows, out);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < out; ++j) {
      expected.add(i, j, static_cast<double>(bias(0, j)));
      for (std::int64_t k = 0; k < in; ++k) {
        expected.add(i, j, read(i, k) * static_cast<double>(weight(j, k)));
      }
    }
  }
  const Matrix<T> result = y.values();
  const Matrix<double> found = moments.values();
  expect_agreement("y", result, expected);
  expect_moments(result, found);
  run();
  EXPECT_TRUE(test::same_bits(result, y.values())) << "twice";
  EXPECT_TRUE(test::same_bits(found, moments.values())) << "twice";
  // Each of the two alone.
  around.moments = {};
  run();
  if (out > 4) {
    EXPECT_TRUE(test::same_bits(result, y.values())) << "without moments";
  } else {  // dot products, on a GPU
    expect_agreement("y without moments", y.values(), expected);
  }
  around = {{}, false, moments};
  run();
  expect_moments(y.values(), moments.values());
}

template <class T>
void check_backward(const Shape& shape, Device device) {
  const auto& [rows, in, out, relu, margin] = shape;
  const auto x = normal_matrix<T>(rows, in, 1);
  const auto weight = normal_matrix<T>(out, in, 2);
  const auto slopes = normal_matrix<T>(rows, out, 4);
  const auto numbers = normal_matrix<WideOf<T>>(in, 4, 5);
  DeviceMatrix<T> from(x, device, margin), w(weight, device, margin);
  DeviceMatrix<T> grad_y(slopes, device, margin), grad_x(rows, in, device, margin);
  DeviceMatrix<T> grad_w(out, in, device, margin), grad_b(1, out, device, 0);
  DeviceMatrix<WideOf<T>> columns(numbers, device, 0);
  const auto run = [&] {
    linear_backward(from, w, grad_y, grad_w, grad_b, grad_x, device, {}, test::workspace_on(device),
                    Precision::fp32, {columns, relu, {}});
  };
  run();
  const Matrix<double> read = normalised(x, numbers, relu);
  SummedProduct of_weight(out, in), of_x(rows, in), of_bias(1, out);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < out; ++j) {
      const auto slope = static_cast<double>(slopes(i, j));
      of_bias.add(0, j, slope);
      for (std::int64_t k = 0; k < in; ++k) {
        of_weight.add(j, k, slope * read(i, k));
        of_x.add(i, k, slope * static_cast<double>(weight(j, k)));
      }
    }
  }
  const Matrix<T> first = grad_w.values();
  expect_agreement("grad_weight", first, of_weight);
  expect_agreement("grad_bias", grad_b.values(), of_bias);
  expect_agreement("grad_x", grad_x.values(), of_x);
  run();
  EXPECT_TRUE(test::same_bits(first, grad_w.values())) << "twice";
}

constexpr Shape shapes[] = {{32900, 64, 64, true, 0},
                            {33001, 16, 7, true, 3},
                            {32769, 22, 41, false, 8},
                            {70000, 9, 2, true, 0},
                            {33024, 33, 32, false, 3}};

TEST_P(FusedLinear, agrees_with_normalising_before) {
  with_type_of(precision(), [&]<class T>() {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.in << " -> " << shape.out);
      if (!fuses(shape.rows, shape.in, shape.out)) continue;
      check_forward<T>(shape, device());
      check_backward<T>(shape, device());
    }
  });
}

/// Far from 0, and without any distance at all.
TEST_P(FusedLinear, moments_keep_their_digits) {
  if (precision() == Precision::bf16 || !fuses(40000, 8, 3)) return;
  with_type_of(precision(), [&]<class T>() {
    auto x = normal_matrix<T>(40000, 8, 1);
    for (std::int64_t i = 0; i < x.rows(); ++i) x(i, 0) = static_cast<T>(1.0f);
    Matrix<T> weight(3, 8, static_cast<T>(0.0f));
    weight(0, 0) = static_cast<T>(1e4f);
    weight(0, 1) = static_cast<T>(1.0f);
    weight(1, 0) = static_cast<T>(1e6f);
    weight(2, 3) = static_cast<T>(1e-3f);
    DeviceMatrix<T> from(x, device()), w(weight, device()), y(40000, 3, device());
    DeviceMatrix<double> moments(3, 3, device(), 0);
    linear(from, w, {}, y, device(), {}, test::workspace_on(device()), Precision::fp32,
           {{}, false, moments});
    expect_moments(y.values(), moments.values());
    EXPECT_EQ(moments.values()(2, 1), 0);
  });
}

/// A row that is not finite spoils itself and the moments, nothing else.
TEST_P(FusedLinear, passes_on_what_is_not_finite) {
  if (!fuses(33000, 16, 16)) return;
  with_type_of(precision(), [&]<class T>() {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      auto x = normal_matrix<T>(33000, 16, 1);
      x(20000, 5) = static_cast<T>(bad);
      Matrix<WideOf<T>> numbers(16, 4, WideOf<T>{1});
      DeviceMatrix<T> from(x, device()), y(33000, 16, device());
      DeviceMatrix<T> w(Matrix<T>(16, 16, static_cast<T>(1.0f)), device());
      DeviceMatrix<WideOf<T>> columns(numbers, device(), 0);
      DeviceMatrix<double> moments(3, 16, device(), 0);
      linear(from, w, {}, y, device(), {}, test::workspace_on(device()), Precision::fp32,
             {columns, true, moments});
      const Matrix<T> result = y.values();
      for (std::int64_t i = 0; i < result.size(); ++i) {
        ASSERT_EQ(std::isfinite(static_cast<double>(result.data()[i])), i / 16 != 20000) << i;
      }
      const Matrix<double> found = moments.values();
      for (std::int64_t j = 0; j < 16; ++j) EXPECT_FALSE(std::isfinite(found(2, j)));
    }
  });
}

/// Batch norm from moments, and what it leaves to the reader, against the whole op.
TEST_P(FusedLinear, batch_norm_takes_moments_and_leaves_columns) {
  if (!fuses(33000, 16, 16)) return;
  with_type_of(precision(), [&]<class T>() {
    using W = WideOf<T>;
    const auto x = normal_matrix<T>(33000, 16, 1);
    const auto weight = normal_matrix<T>(16, 16, 2);
    DeviceMatrix<T> from(x, device()), w(weight, device()), y(33000, 16, device());
    DeviceMatrix<T> whole(33000, 16, device()), apart(33000, 16, device());
    DeviceMatrix<double> moments(3, 16, device(), 0);
    const DenseWorkspace* const workspace = test::workspace_on(device());
    linear(from, w, {}, y, device(), {}, workspace, Precision::fp32, {{}, false, moments});
    const auto of_columns = [&](std::uint64_t seed) {
      return DeviceMatrix<W>(normal_matrix<W>(1, 16, seed), device(), 0);
    };
    DeviceMatrix<W> gamma = of_columns(3), beta = of_columns(4);
    DeviceMatrix<W> mean = of_columns(5), variance = of_columns(6);
    DeviceMatrix<W> same_mean = of_columns(5), same_variance = of_columns(6);
    DeviceMatrix<W> saved(1, 16, device(), 0), deviation(1, 16, device(), 0);
    DeviceMatrix<W> same_saved(1, 16, device(), 0), same_deviation(1, 16, device(), 0);
    DeviceMatrix<W> columns(16, 4, device(), 0);
    ActivationOptions relu;
    relu.activation = Activation::relu;
    batch_norm(y, gamma, beta, {}, {mean, variance}, whole, saved, deviation, device(), {},
               workspace, relu);
    batch_norm(y, gamma, beta, {}, {same_mean, same_variance}, apart, same_saved, same_deviation,
               device(), {}, workspace, relu, {}, {moments, columns});
    const auto expect_same = [](const char* what, const auto& got, const auto& expected,
                                double tolerance) {
      for (std::int64_t i = 0; i < got.size(); ++i) {
        const auto value = static_cast<double>(expected.data()[i]);
        ASSERT_NEAR(static_cast<double>(got.data()[i]), value, tolerance * (1 + std::abs(value)))
            << what << ' ' << i;
      }
    };
    expect_same("mean", same_mean.values(), mean.values(), 1e-6);
    expect_same("variance", same_variance.values(), variance.values(), 1e-5);
    expect_same("saved mean", same_saved.values(), saved.values(), 1e-6);
    expect_same("deviation", same_deviation.values(), deviation.values(), 1e-5);
    expect_same("y", apart.values(), whole.values(), std::is_same_v<T, Bfloat16> ? 0x1p-7 : 1e-5);
    // Without y: the columns say what it would be.
    DeviceMatrix<W> left(16, 4, device(), 0);
    batch_norm(y, gamma, beta, {}, {}, {}, {}, {}, device(), {}, workspace, relu, {}, {{}, left});
    expect_same("columns", left.values(), columns.values(), 1e-5);
    const Matrix<T> stored = y.values();
    Matrix<W> numbers = left.values();
    const Matrix<double> expected = normalised(stored, numbers, true);
    expect_same("normalised", whole.values(), expected,
                std::is_same_v<T, Bfloat16> ? 0x1p-7 : 1e-5);
  });
}

TEST(FusedLinearErrors, say_what_does_not_fit) {
  Matrix<float> x(100, 16, 0.0f), weight(4, 16, 0.0f), y(100, 4), columns(16, 4, 0.0f);
  testing::expect_error(ErrorCode::invalid_argument, {"linear", "linear_fuses"}, [&] {
    linear(x, weight, {}, y, {}, {}, nullptr, Precision::fp32, {columns, true, {}});
  });
  LinearSurroundings ends_in_relu;
  ends_in_relu.relu_behind = true;
  testing::expect_error(ErrorCode::invalid_argument, {"linear", "linear_activates"}, [&] {
    linear(x, weight, {}, y, {}, {}, nullptr, Precision::fp32, ends_in_relu);
  });
  Matrix<float> narrow(16, 3, 0.0f), normal(100, 16);
  testing::expect_error(ErrorCode::invalid_argument, {"batch_norm", "columns"}, [&] {
    batch_norm(x, {}, {}, {}, {}, normal, {}, {}, {}, {}, nullptr, {}, {}, {{}, narrow});
  });
}

TEST_P(FusedLinear, ends_in_relu) {
  constexpr Shape ends[] = {{32900, 64, 64, false, 0},
                            {33001, 74, 33, false, 2},
                            {32769, 96, 7, false, 3},
                            {40000, 9, 2, false, 0}};
  with_type_of(precision(), [&]<class T>() {
    for (const auto& [rows, in, out, relu, margin] : ends) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << in << " -> " << out);
      if (!linear_activates(device(), storage_of(precision()), rows, in, out)) continue;
      auto x = normal_matrix<T>(rows, in, 1);
      x(20000, 3) = static_cast<T>(std::nanf(""));
      const auto weight = normal_matrix<T>(out, in, 2);
      const auto bias = normal_matrix<T>(1, out, 3);
      DeviceMatrix<T> from(x, device(), margin), w(weight, device(), margin);
      DeviceMatrix<T> b(bias, device(), 0);
      DeviceMatrix<T> y(rows, out, device(), margin), plain(rows, out, device(), margin);
      const auto run = [&](DeviceMatrix<T>& to, bool ends_so) {
        LinearSurroundings around;
        around.relu_behind = ends_so;
        linear(from, w, b, to, device(), {}, test::workspace_on(device()), Precision::fp32, around);
      };
      run(y, true);
      run(plain, false);
      const Matrix<T> ended = y.values(), before = plain.values();
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < out; ++j) {
          const auto expected = static_cast<double>(before(i, j));
          const auto found = static_cast<double>(ended(i, j));
          if (i == 20000) {
            ASSERT_TRUE(std::isnan(found)) << j;
          } else if (out > 4) {
            ASSERT_EQ(found, std::max(expected, 0.0)) << i << ", " << j;
          } else {  // which another kernel computes without ReLU
            ASSERT_NEAR(found, std::max(expected, 0.0), 1e-4) << i << ", " << j;
          }
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, FusedLinear, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
