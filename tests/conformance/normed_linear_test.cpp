// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/gemm_check.hpp"
#include "support/matrices.hpp"
#include "support/summed_product.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/norm_sums.hpp"

/// Gradients of dense layers that make the gradient of the batch norm behind them themselves.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::normal_matrix;
using test::SummedProduct;

class NormedLinear : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  bool fuses(std::int64_t rows, std::int64_t in, std::int64_t out) const {
    return linear_gradient_fuses(device(), storage_of(GetParam().precision), rows, in, out);
  }
};

/// Few binary places: sums and products of a few such numbers are exact, and so is what lies above
/// 0.
Matrix<float> coarse_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<float> matrix = normal_matrix<float>(rows, cols, seed);
  for (float& number : matrix.span()) number = std::round(number * 8) / 8;
  return matrix;
}

struct Shape {
  std::int64_t rows, in, out;
  bool reads_columns, relu_before, relu_behind;
  std::int64_t inner;  ///< of factors; 0: the gradient is a matrix
};

template <class T>
void expect_agreement(const char* what, const Matrix<T>& computed, const SummedProduct& expected) {
  const testing::Tolerance tolerance = testing::tolerance_of(Precision::fp32);
  EXPECT_EQ(
      testing::first_mismatch(computed.view(), expected.values, expected.magnitude, tolerance), "")
      << what;
}

struct Expected {
  SummedProduct of_weight, of_x, of_sums;
};

/// One of each number that goes into the gradients.
struct Numbers {
  explicit Numbers(const Shape& shape)
      : x(coarse_matrix(shape.rows, shape.in, 1)),
        y(coarse_matrix(shape.rows, shape.out, 2)),
        gradient(coarse_matrix(shape.rows, shape.inner > 0 ? shape.inner : shape.out, 3)),
        right(coarse_matrix(std::max<std::int64_t>(shape.inner, 1), shape.out, 4)),
        weight(coarse_matrix(shape.out, shape.in, 5)),
        x_columns(coarse_matrix(shape.in, 4, 6)),
        columns(coarse_matrix(shape.out, 8, 7)) {}

  Matrix<float> x, y, gradient, right, weight, x_columns, columns;
};

/// The gradient of y.
Matrix<double> gradient_of_y(const Shape& shape, const Numbers& numbers) {
  Matrix<double> result(shape.rows, shape.out);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t j = 0; j < shape.out; ++j) {
      double gradient = shape.inner > 0 ? 0 : numbers.gradient(i, j);
      for (std::int64_t k = 0; k < shape.inner; ++k) {
        gradient += static_cast<double>(numbers.gradient(i, k)) * numbers.right(k, j);
      }
      const float* const column = numbers.columns.view().row(j);
      const double distance = static_cast<double>(numbers.y(i, j)) - column[0];
      if (shape.relu_behind && distance * column[1] + column[2] <= 0) gradient = 0;
      result(i, j) = column[1] * (gradient - column[3] - distance * column[4]);
    }
  }
  return result;
}

/// By the gradient of y.
Expected expected_of(const Shape& shape, const Numbers& numbers, const Matrix<double>& slopes) {
  Expected expected{{shape.out, shape.in}, {shape.rows, shape.in}, {2, shape.in}};
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    for (std::int64_t k = 0; k < shape.in; ++k) {
      const float* const column = numbers.x_columns.view().row(k);
      const double distance = static_cast<double>(numbers.x(i, k)) - column[0];
      const double z = distance * column[1] + column[2];
      const bool counts = !(shape.relu_before && z <= 0);
      const double read = !shape.reads_columns ? numbers.x(i, k) : counts ? z : 0;
      for (std::int64_t j = 0; j < shape.out; ++j) {
        expected.of_weight.add(j, k, slopes(i, j) * read);
        const double term = slopes(i, j) * numbers.weight(j, k);
        expected.of_x.add(i, k, term);
        if (!counts) continue;
        expected.of_sums.add(0, k, term);
        expected.of_sums.add(1, k, term * distance);
      }
    }
  }
  return expected;
}

void check(const Shape& shape, Device device) {
  const Numbers numbers(shape);
  DeviceMatrix<float> x(numbers.x, device, 0), y(numbers.y, device, 0);
  DeviceMatrix<float> gradient(numbers.gradient, device, 0), right(numbers.right, device, 0);
  DeviceMatrix<float> weight(numbers.weight, device, 3), columns(numbers.columns, device, 0);
  DeviceMatrix<float> x_columns(numbers.x_columns, device, 0);
  DeviceMatrix<float> grad_x(shape.rows, shape.in, device, 4);
  DeviceMatrix<float> grad_weight(shape.out, shape.in, device, 3);
  DeviceMatrix<double> sums(2, shape.in, device, 3);
  LinearSurroundings around;
  if (shape.reads_columns) {
    around.columns = x_columns;
    around.relu = shape.relu_before;
    around.norm_sums = sums;
  }
  around.normed = {y, columns, shape.relu_behind, {}};
  ConstOperand grad_y = gradient;
  if (shape.inner > 0) {
    around.normed.factors = {gradient, right};
    grad_y = {};
  }
  const auto run = [&] {
    linear_backward(x, weight, grad_y, grad_weight, {}, grad_x, device, {},
                    test::workspace_on(device), Precision::fp32, around);
  };
  run();
  const Expected expected = expected_of(shape, numbers, gradient_of_y(shape, numbers));
  const Matrix<float> first = grad_weight.values();
  expect_agreement("grad_weight", first, expected.of_weight);
  expect_agreement("grad_x", grad_x.values(), expected.of_x);
  if (shape.reads_columns) expect_agreement("norm_sums", sums.values(), expected.of_sums);
  const Matrix<double> first_sums = sums.values();
  run();
  EXPECT_TRUE(test::same_bits(first, grad_weight.values())) << "twice";
  EXPECT_TRUE(test::same_bits(first_sums, sums.values())) << "twice";
}

constexpr Shape shapes[] = {{33001, 64, 64, true, true, true, 0},
                            {40000, 64, 64, false, false, true, 2},
                            {32769, 20, 44, true, false, false, 0},
                            {33000, 8, 8, false, false, true, 4},
                            {32800, 60, 12, true, true, false, 1}};

TEST_P(NormedLinear, agrees_with_double_precision) {
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.in << " -> " << shape.out);
    if (fuses(shape.rows, shape.in, shape.out)) check(shape, device());
  }
}

/// Where x needs no gradient its rows may be longer, and of any width; they end on boundaries.
TEST_P(NormedLinear, finds_the_gradient_of_a_weight_alone) {
  constexpr Shape of_weights[] = {
      {33001, 74, 64, false, false, true, 0}, {32769, 96, 64, false, false, false, 0},
      {40000, 9, 8, false, false, true, 0},   {33000, 81, 44, false, false, true, 0},
      {36000, 64, 12, false, false, true, 0}, {32800, 67, 60, false, false, false, 0}};
  const ElementType type = storage_of(GetParam().precision);
  for (const Shape& shape : of_weights) {
    const auto& [rows, in, out, reads, before, behind, inner] = shape;
    if (!linear_weight_gradient_fuses(device(), type, rows, in, out)) continue;
    const Numbers numbers(shape);
    const Expected expected = expected_of(shape, numbers, gradient_of_y(shape, numbers));
    for (const std::int64_t gap : {0, 4}) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << in << " -> " << out << ", gap " << gap);
      // Up to the next boundary, to one further on, and so far that rows are copied one by one.
      const std::int64_t multiple = gap == 0 ? 4 : in < 70 ? 16 : 128;
      DeviceMatrix<float> x = DeviceMatrix<float>::filled(numbers.x, device(), multiple);
      DeviceMatrix<float> y(numbers.y, device(), gap), gradient(numbers.gradient, device(), gap);
      DeviceMatrix<float> columns(numbers.columns, device(), 0);
      DeviceMatrix<float> grad_weight(out, in, device(), 3);
      LinearSurroundings around;
      around.normed = {y, columns, behind, {}};
      const auto run = [&] {
        linear_backward(x, {}, gradient, grad_weight, {}, {}, device(), {},
                        test::workspace_on(device()), Precision::fp32, around);
        return grad_weight.values();
      };
      const Matrix<float> first = run();
      expect_agreement("grad_weight", first, expected.of_weight);
      EXPECT_TRUE(test::same_bits(first, run())) << "twice";
    }
  }
}

TEST_P(NormedLinear, a_weight_alone_passes_on_what_is_not_finite) {
  const Shape shape{33000, 70, 16, false, false, false, 0};
  const ElementType type = storage_of(GetParam().precision);
  if (!linear_weight_gradient_fuses(device(), type, shape.rows, shape.in, shape.out)) return;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Numbers numbers(shape);
    std::fill(numbers.columns.span().begin(), numbers.columns.span().end(), 1.0f);
    std::fill(numbers.x.span().begin(), numbers.x.span().end(), 1.0f);
    numbers.gradient(20000, 5) = bad;
    DeviceMatrix<float> x = DeviceMatrix<float>::filled(numbers.x, device(), 4);
    DeviceMatrix<float> y(numbers.y, device(), 0);
    DeviceMatrix<float> gradient(numbers.gradient, device(), 0);
    DeviceMatrix<float> columns(numbers.columns, device(), 0), grad_weight(16, 70, device(), 0);
    LinearSurroundings around;
    around.normed = {y, columns, false, {}};
    linear_backward(x, {}, gradient, grad_weight, {}, {}, device(), {},
                    test::workspace_on(device()), Precision::fp32, around);
    const Matrix<float> of_weight = grad_weight.values();
    for (std::int64_t i = 0; i < of_weight.size(); ++i) {
      ASSERT_EQ(std::isfinite(of_weight.data()[i]), i / 70 != 5) << i;
    }
  }
}

/// A gradient of one or two columns is not multiplied with the weight, but what the batch norm
/// before the layer needs of the product is known.
TEST_P(NormedLinear, finds_sums_beside_the_gradient_of_a_thin_weight) {
  const ElementType type = storage_of(GetParam().precision);
  constexpr Shape thin[] = {{33001, 64, 2, true, true, false, 0},
                            {40000, 61, 2, true, false, false, 0},
                            {140000, 8, 1, true, true, false, 0}};
  for (const Shape& shape : thin) {
    const auto& [rows, in, out, reads, relu, behind, inner] = shape;
    if (!linear_finds_norm_sums(device(), type, rows, in, out)) continue;
    SCOPED_TRACE(::testing::Message() << rows << " x " << in << " -> " << out);
    const Numbers numbers(shape);
    DeviceMatrix<float> x(numbers.x, device(), 0), gradient(numbers.gradient, device(), 1);
    DeviceMatrix<float> weight(numbers.weight, device(), 3);
    DeviceMatrix<float> columns(numbers.x_columns, device(), 0);
    DeviceMatrix<float> grad_weight(out, in, device(), 3), grad_bias(1, out, device(), 0);
    DeviceMatrix<double> sums(2, in, device(), 3);
    LinearSurroundings around;
    around.columns = columns;
    around.relu = relu;
    around.norm_sums = sums;
    linear_backward(x, weight, gradient, grad_weight, grad_bias, {}, device(), {},
                    test::workspace_on(device()), Precision::fp32, around);
    const Expected expected = expected_of(shape, numbers, test::to_double(numbers.gradient));
    expect_agreement("grad_weight", grad_weight.values(), expected.of_weight);
    expect_agreement("norm_sums", sums.values(), expected.of_sums);
    SummedProduct of_bias(1, out);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < out; ++j) of_bias.add(0, j, numbers.gradient(i, j));
    }
    expect_agreement("grad_bias", grad_bias.values(), of_bias);
  }
}

/// A number that is not finite spoils what it is part of, and no other row of grad_x.
TEST_P(NormedLinear, passes_on_what_is_not_finite) {
  const Shape shape{33000, 16, 16, false, false, false, 0};
  if (!fuses(shape.rows, shape.in, shape.out)) return;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Numbers numbers(shape);
    std::fill(numbers.columns.span().begin(), numbers.columns.span().end(), 1.0f);
    std::fill(numbers.weight.span().begin(), numbers.weight.span().end(), 1.0f);
    numbers.gradient(20000, 5) = bad;
    DeviceMatrix<float> x(numbers.x, device(), 0), y(numbers.y, device(), 0);
    DeviceMatrix<float> gradient(numbers.gradient, device(), 0);
    DeviceMatrix<float> weight(numbers.weight, device(), 0), columns(numbers.columns, device(), 0);
    DeviceMatrix<float> grad_x(shape.rows, 16, device(), 0), grad_weight(16, 16, device(), 0);
    LinearSurroundings around;
    around.normed = {y, columns, false, {}};
    linear_backward(x, weight, gradient, grad_weight, {}, grad_x, device(), {},
                    test::workspace_on(device()), Precision::fp32, around);
    const Matrix<float> of_x = grad_x.values(), of_weight = grad_weight.values();
    for (std::int64_t i = 0; i < of_x.size(); ++i) {
      ASSERT_EQ(std::isfinite(of_x.data()[i]), i / 16 != 20000) << i;
    }
    for (std::int64_t i = 0; i < of_weight.size(); ++i) {
      ASSERT_EQ(std::isfinite(of_weight.data()[i]), i / 16 != 5) << i;
    }
  }
}

/// The kernel stores two numbers at once, and reads four.
TEST_P(NormedLinear, refuses_rows_off_their_boundaries_and_shared_memory) {
  const Shape shape{33000, 16, 16, false, false, false, 0};
  if (!fuses(shape.rows, shape.in, shape.out)) return;
  const Numbers numbers(shape);
  DeviceMatrix<float> x(numbers.x, device(), 0), y(numbers.y, device(), 0);
  DeviceMatrix<float> gradient(numbers.gradient, device(), 0), weight(numbers.weight, device(), 0);
  DeviceMatrix<float> columns(numbers.columns, device(), 0), grad_weight(16, 16, device(), 0);
  DeviceMatrix<float> grad_x(shape.rows, 16, device(), 4), odd_rows(shape.rows, 16, device(), 1);
  LinearSurroundings around;
  around.normed = {y, columns, false, {}};
  const auto expect_refused = [&](const Operand& to, const char* problem) {
    testing::expect_error(ErrorCode::invalid_argument, {"grad_x", problem}, [&] {
      linear_backward(x, weight, gradient, grad_weight, {}, to, device(), {},
                      test::workspace_on(device()), Precision::fp32, around);
    });
  };
  expect_refused(odd_rows, "16 bytes");
  Operand later = grad_x;
  later.data = static_cast<float*>(later.data) + 1;
  expect_refused(later, "16 bytes");
  expect_refused(y, "shares memory with y");
}

/// What batch norm leaves to the layer before it, and what that one tells the norm before, against
/// batch norm alone.
TEST_P(NormedLinear, batch_norm_leaves_its_gradient_and_takes_sums) {
  constexpr std::int64_t rows = 33000, width = 16;
  if (!fuses(rows, width, width)) return;
  const DenseWorkspace* const workspace = test::workspace_on(device());
  const auto row_of = [&](std::uint64_t seed) {
    return DeviceMatrix<float>(normal_matrix<float>(1, width, seed), device(), 0);
  };
  const auto empty = [&](std::int64_t r, std::int64_t c) {
    return DeviceMatrix<float>(r, c, device(), 0);
  };
  DeviceMatrix<float> y(normal_matrix<float>(rows, width, 1), device(), 0);
  DeviceMatrix<float> grad(normal_matrix<float>(rows, width, 2), device(), 0);
  DeviceMatrix<float> gamma = row_of(3), beta = row_of(4), mean = row_of(5);
  DeviceMatrix<float> deviation(Matrix<float>(1, width, 0.75f), device(), 0);
  DeviceMatrix<float> grad_y = empty(rows, width), again = empty(rows, width);
  DeviceMatrix<float> of_gamma = empty(1, width), of_beta = empty(1, width);
  DeviceMatrix<float> same_gamma = empty(1, width), same_beta = empty(1, width);
  DeviceMatrix<float> columns = empty(width, 8);
  BatchNormSurroundings around;
  around.activation.activation = Activation::relu;
  around.beta = beta;
  batch_norm_backward(y, gamma, mean, deviation, grad, grad_y, of_gamma, of_beta, device(), {},
                      workspace, around);
  BatchNormSurroundings leaves = around;
  leaves.grad_columns = columns;
  batch_norm_backward(y, gamma, mean, deviation, grad, {}, same_gamma, same_beta, device(), {},
                      workspace, leaves);
  EXPECT_TRUE(test::same_bits(of_gamma.values(), same_gamma.values()));
  EXPECT_TRUE(test::same_bits(of_beta.values(), same_beta.values()));
  // With 1 as the weight the gradient of x is that of y.
  Matrix<float> one(width, width, 0.0f);
  for (std::int64_t i = 0; i < width; ++i) one(i, i) = 1;
  DeviceMatrix<float> weight(one, device(), 0), of_x = empty(rows, width);
  DeviceMatrix<float> of_weight = empty(width, width);
  LinearSurroundings linear_around;
  linear_around.normed = {y, columns, true, {}};
  linear_backward(y, weight, grad, of_weight, {}, of_x, device(), {}, workspace, Precision::fp32,
                  linear_around);
  const auto expect_near = [](const Matrix<float>& got, const Matrix<float>& expected) {
    for (std::int64_t i = 0; i < got.size(); ++i) {
      const float value = expected.data()[i];
      ASSERT_NEAR(got.data()[i], value, 1e-5 * (1 + std::abs(value))) << i;
    }
  };
  expect_near(of_x.values(), grad_y.values());
  // The sums as a layer behind would find them.
  Matrix<double> found(2, width, 0.0);
  const Matrix<float> of_beta_now = of_beta.values(), of_gamma_now = of_gamma.values();
  for (std::int64_t j = 0; j < width; ++j) {
    found(0, j) = of_beta_now(0, j);
    found(1, j) = of_gamma_now(0, j) / 0.75;
  }
  DeviceMatrix<double> sums(found, device(), 0);
  BatchNormSurroundings knows = around;
  knows.sums = sums;
  batch_norm_backward(y, gamma, mean, deviation, grad, again, same_gamma, same_beta, device(), {},
                      workspace, knows);
  expect_near(again.values(), grad_y.values());
  expect_near(same_gamma.values(), of_gamma_now);
}

TEST(NormedLinearErrors, say_when_no_pass_finds_sums) {
  Matrix<float> x(40000, 16, 0.0f), weight(2, 16, 0.0f), grad(40000, 2, 0.0f), of_weight(2, 16);
  Matrix<float> columns(16, 4, 0.0f);
  Matrix<double> sums(2, 16);
  LinearSurroundings around;
  around.columns = columns;
  around.norm_sums = sums;
  testing::expect_error(ErrorCode::invalid_argument, {"linear_finds_norm_sums"}, [&] {
    linear_backward(x, weight, grad, of_weight, {}, {}, {}, {}, nullptr, Precision::fp32, around);
  });
}

TEST(NormedLinearErrors, say_what_does_not_fit) {
  Matrix<float> x(40000, 16, 0.0f), weight(16, 16, 0.0f), grad(40000, 16, 0.0f);
  Matrix<float> of_weight(16, 16), of_x(40000, 16), columns(16, 8, 0.0f);
  LinearSurroundings around;
  around.normed = {x, columns, false, {}};
  testing::expect_error(ErrorCode::invalid_argument, {"linear_gradient_fuses"}, [&] {
    linear_backward(x, weight, grad, of_weight, {}, of_x, {}, {}, nullptr, Precision::fp32, around);
  });
  testing::expect_error(ErrorCode::invalid_argument, {"linear_weight_gradient_fuses"}, [&] {
    linear_backward(x, weight, grad, of_weight, {}, {}, {}, {}, nullptr, Precision::fp32, around);
  });
  Matrix<float> row(1, 16, 1.0f), sums(1, 16);
  for (const bool before_relu : {false, true}) {
    LinearSurroundings finishes = around;
    finishes.before_relu = before_relu;
    if (!before_relu) finishes.grad_x_sums = sums;
    testing::expect_error(ErrorCode::invalid_argument, {"linear_backward", "grad_x_sums"}, [&] {
      linear_backward(x, weight, grad, of_weight, {}, of_x, {}, {}, nullptr, Precision::fp32,
                      finishes);
    });
  }
  BatchNormSurroundings leaves;
  leaves.grad_columns = columns;
  testing::expect_error(ErrorCode::invalid_argument, {"batch_norm_backward", "GPU"}, [&] {
    batch_norm_backward(x, {}, row, row, grad, {}, {}, {}, {}, {}, nullptr, leaves);
  });
  Matrix<double> known(2, 16, 0.0);
  BatchNormSurroundings knows;
  knows.sums = known;
  const auto expect_refused = [&](BatchNormSurroundings with, Operand grad_x) {
    testing::expect_error(
        ErrorCode::invalid_argument, {"batch_norm_backward", "ReLU", "dropout"},
        [&] { batch_norm_backward(x, {}, row, row, grad, grad_x, {}, {}, {}, {}, nullptr, with); });
  };
  for (const Activation activation : {Activation::elu, Activation::leaky_relu}) {
    leaves.activation.activation = knows.activation.activation = activation;
    expect_refused(leaves, {});
    expect_refused(knows, of_x);
  }
  leaves.activation = knows.activation = {.dropout = 0.5};
  expect_refused(leaves, {});
  expect_refused(knows, of_x);
}

INSTANTIATE_TEST_SUITE_P(Backends, NormedLinear, ::testing::ValuesIn(test::wide_dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
