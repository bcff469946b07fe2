// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/expect_error.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/batch_norm.hpp"

/// Gradients that come as two factors, against the same as a matrix, on every device.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::normal_matrix;
using test::with_type_of;

template <class T>
using WideOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

class GradientFactorsOps : public ::testing::TestWithParam<test::DenseBackend> {
 protected:
  Device device() const { return GetParam().device; }
  Precision precision() const { return GetParam().precision; }
};

struct Shape {
  std::int64_t rows, k, cols, margin;
};
/// Few rows are multiplied before, many on the way.
constexpr Shape shapes[] = {{33, 2, 16, 0},     {40000, 2, 64, 0}, {33001, 3, 22, 3},
                            {32769, 1, 41, 8},  {33000, 4, 8, 8},  {33000, 5, 16, 0},
                            {100000, 2, 257, 0}};

/// Factors of which every product and sum is a small integer over 16: exact in every type.
template <class T>
Matrix<T> sixteenths(std::int64_t rows, std::int64_t cols, std::int64_t seed, std::int64_t most) {
  Matrix<T> matrix(rows, cols);
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] =
        static_cast<T>(static_cast<float>((i * 7 + seed) % (2 * most + 1) - most) / 4);
  }
  return matrix;
}

template <class T>
struct Factors {
  Matrix<T> left, right, product;

  explicit Factors(const Shape& shape)
      : left(sixteenths<T>(shape.rows, shape.k, 1, 3)),
        right(sixteenths<T>(shape.k, shape.cols, 2, 2)),
        product(shape.rows, shape.cols) {
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      for (std::int64_t j = 0; j < shape.cols; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < shape.k; ++k) {
          sum += static_cast<float>(left(i, k)) * static_cast<float>(right(k, j));
        }
        product(i, j) = static_cast<T>(sum);
      }
    }
  }
};

TEST_P(GradientFactorsOps, activation_is_the_same) {
  with_type_of(precision(), [&]<class T>() {
    for (const auto& [rows, k, cols, margin] : shapes) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << k << " x " << cols);
      const Factors<T> factors(Shape{rows, k, cols, margin});
      const auto values = normal_matrix<T>(rows, cols, 3);
      DeviceMatrix<T> left(factors.left, device(), margin);
      DeviceMatrix<T> right(factors.right, device(), margin);
      DeviceMatrix<T> whole(factors.product, device(), margin), x(values, device(), margin);
      DeviceMatrix<T> bias(normal_matrix<T>(1, cols, 4), device(), 0);
      DeviceMatrix<T> grad_x(rows, cols, device(), margin), same_x(rows, cols, device(), margin);
      DeviceMatrix<T> grad_b(1, cols, device(), 0), same_b(1, cols, device(), 0);
      ActivationOptions options;
      options.activation = Activation::relu;
      options.dropout = 0.5;
      options.random = Random(7, 1);
      const DenseWorkspace* const workspace = test::workspace_on(device());
      bias_activation_dropout_backward(x, bias, options, whole, grad_x, grad_b, device(), {},
                                       workspace);
      bias_activation_dropout_backward(x, bias, options, {}, same_x, same_b, device(), {},
                                       workspace, {left, right});
      EXPECT_TRUE(test::same_bits(grad_x.values(), same_x.values()));
      EXPECT_TRUE(test::same_bits(grad_b.values(), same_b.values()));
      bias_activation_dropout_backward(x, bias, options, {}, same_x, {}, device(), {}, workspace,
                                       {left, right});
      EXPECT_TRUE(test::same_bits(grad_x.values(), same_x.values())) << "without the bias";
    }
  });
}

TEST_P(GradientFactorsOps, batch_norm_is_the_same) {
  with_type_of(precision(), [&]<class T>() {
    using W = WideOf<T>;
    for (const auto& [rows, k, cols, margin] : shapes) {
      SCOPED_TRACE(::testing::Message() << rows << " x " << k << " x " << cols);
      const Factors<T> factors(Shape{rows, k, cols, margin});
      DeviceMatrix<T> left(factors.left, device(), margin);
      DeviceMatrix<T> right(factors.right, device(), margin);
      DeviceMatrix<T> whole(factors.product, device(), margin);
      DeviceMatrix<T> x(normal_matrix<T>(rows, cols, 3), device(), margin);
      const auto of_columns = [&](std::uint64_t seed) {
        return DeviceMatrix<W>(normal_matrix<W>(1, cols, seed), device(), 0);
      };
      DeviceMatrix<W> gamma = of_columns(4), beta = of_columns(5);
      DeviceMatrix<W> mean = of_columns(6), deviation = of_columns(7);
      DeviceMatrix<T> grad_x(rows, cols, device(), margin), same_x(rows, cols, device(), margin);
      DeviceMatrix<W> grad_gamma = of_columns(8), grad_beta = of_columns(8);
      DeviceMatrix<W> same_gamma = of_columns(8), same_beta = of_columns(8);
      BatchNormSurroundings around;
      around.activation.activation = Activation::relu;
      around.beta = beta;
      const DenseWorkspace* const workspace = test::workspace_on(device());
      batch_norm_backward(x, gamma, mean, deviation, whole, grad_x, grad_gamma, grad_beta, device(),
                          {}, workspace, around);
      around.factors = {left, right};
      batch_norm_backward(x, gamma, mean, deviation, {}, same_x, same_gamma, same_beta, device(),
                          {}, workspace, around);
      EXPECT_TRUE(test::same_bits(grad_x.values(), same_x.values()));
      EXPECT_TRUE(test::same_bits(grad_gamma.values(), same_gamma.values()));
      EXPECT_TRUE(test::same_bits(grad_beta.values(), same_beta.values()));
    }
  });
}

TEST(GradientFactorsErrors, say_what_does_not_fit) {
  Matrix<float> x(5, 3, 0.0f), left(5, 2, 0.0f), right(2, 4, 0.0f), grad(5, 3, 0.0f);
  testing::expect_error(ErrorCode::invalid_argument, {"right factor", "2 x 3"}, [&] {
    bias_activation_dropout_backward(x, {}, {}, {}, grad, {}, {}, {}, nullptr, {left, right});
  });
  Matrix<float> fits(2, 3, 0.0f);
  testing::expect_error(ErrorCode::invalid_argument, {"grad_y", "factors"}, [&] {
    bias_activation_dropout_backward(x, {}, {}, x, grad, {}, {}, {}, nullptr, {left, fits});
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, GradientFactorsOps, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
