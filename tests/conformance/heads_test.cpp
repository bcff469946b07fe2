// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "support/dense_shapes.hpp"
#include "support/dense_test.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/heads.hpp"

/// Dot products and means of heads on every device and in every precision against plain loops.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;
using test::expect_close;
using test::margins;
using test::normal_matrix;
using test::to_double;
using test::with_type_of;

class HeadSums : public test::DenseTest {};

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

TEST_P(HeadSums, heads_agree_with_plain_loops) {
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

INSTANTIATE_TEST_SUITE_P(Backends, HeadSums, ::testing::ValuesIn(test::dense_backends()),
                         test::backend_name);

}  // namespace
}  // namespace tessera::ops
