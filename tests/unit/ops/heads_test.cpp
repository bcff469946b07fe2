// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/heads.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::copy_of;
using test::normal_matrix;

struct Shape {
  std::int64_t rows, heads, width;
};

constexpr Shape shapes[] = {{0, 2, 3},  {1, 1, 1}, {17, 8, 8}, {33, 3, 7},
                            {5, 1, 64}, {4, 6, 1}, {40, 8, 3}};

TEST(Heads, dot_and_its_gradients) {
  for (const auto [rows, heads, width] : shapes) {
    const Matrix<double> x = normal_matrix<double>(rows, heads * width, 1);
    const Matrix<double> vector = normal_matrix<double>(1, heads * width, 2);
    const Matrix<double> grad_y = normal_matrix<double>(rows, heads, 3);
    Matrix<double> y(rows, heads);
    Matrix<double> grad_x = normal_matrix<double>(rows, heads * width, 4);
    const Matrix<double> before = copy_of(grad_x);
    Matrix<double> grad_vector(1, heads * width, 9.0);
    head_dot(x, vector, y);
    head_dot_backward(x, vector, grad_y, grad_x, grad_vector);
    for (std::int64_t k = 0; k < heads * width; ++k) {
      double expected_vector = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        expected_vector += grad_y(i, k / width) * x(i, k);
        EXPECT_NEAR(grad_x(i, k), before(i, k) + grad_y(i, k / width) * vector(0, k), 1e-13);
      }
      EXPECT_NEAR(grad_vector(0, k), expected_vector, 1e-12);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t h = 0; h < heads; ++h) {
        double expected = 0;
        for (std::int64_t k = h * width; k < (h + 1) * width; ++k)
          expected += x(i, k) * vector(0, k);
        EXPECT_NEAR(y(i, h), expected, 1e-13);
      }
    }
  }
}

TEST(Heads, mean_and_its_gradient) {
  for (const auto [rows, heads, width] : shapes) {
    const Matrix<double> x = normal_matrix<double>(rows, heads * width, 1);
    const Matrix<double> grad_y = normal_matrix<double>(rows, width, 3);
    Matrix<double> y(rows, width);
    Matrix<double> grad_x(rows, heads * width);
    head_mean(x, y);
    head_mean_backward(grad_y, grad_x);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < width; ++k) {
        double expected = 0;
        for (std::int64_t h = 0; h < heads; ++h) {
          expected += x(i, h * width + k);
          EXPECT_DOUBLE_EQ(grad_x(i, h * width + k), grad_y(i, k) / static_cast<double>(heads));
        }
        EXPECT_NEAR(y(i, k), expected / static_cast<double>(heads), 1e-13);
      }
    }
  }
}

TEST(Heads, widths_must_divide) {
  Matrix<float> x(3, 8, 1.0f);
  Matrix<float> vector(1, 8, 1.0f);
  Matrix<float> y(3, 3);
  EXPECT_THROW(head_dot(x, vector, y), Error);
  EXPECT_THROW(head_mean(x, y), Error);
  Matrix<float> short_vector(1, 7, 1.0f);
  Matrix<float> fits(3, 2);
  EXPECT_THROW(head_dot(x, short_vector, fits), Error);
}

}  // namespace
}  // namespace tessera::ops
