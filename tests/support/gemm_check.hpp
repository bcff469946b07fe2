// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <initializer_list>
#include <type_traits>

#include <gtest/gtest.h>

#include "ops/gemm/reference.hpp"
#include "support/dense_backends.hpp"
#include "support/dense_workspace.hpp"
#include "support/matrices.hpp"
#include "tessera/ops/gemm.hpp"

namespace tessera::test {

inline Matrix<double> absolute(Matrix<double> matrix) {
  for (double& value : matrix.span()) value = std::abs(value);
  return matrix;
}

struct ProductShape {
  std::int64_t rows, cols, inner;
};

/// What is added to, and what lies between the rows of the matrices.
struct ProductForm {
  double beta;
  std::int64_t margin;
};

/// Checks a product in several forms, for which the reference multiplies once.
template <class T>
void check_gemm(const ProductShape& shape, ops::Transpose turn_a, ops::Transpose turn_b,
                std::initializer_list<ProductForm> forms, Device device,
                Precision arithmetic = ops::PrecisionOf<T>::value) {
  const bool ta = turn_a == ops::Transpose::yes, tb = turn_b == ops::Transpose::yes;
  const auto a = normal_matrix<T>(ta ? shape.inner : shape.rows, ta ? shape.rows : shape.inner, 11);
  const auto b = normal_matrix<T>(tb ? shape.cols : shape.inner, tb ? shape.inner : shape.cols, 12);
  const auto start = normal_matrix<T>(shape.rows, shape.cols, 13);
  Matrix<double> product(shape.rows, shape.cols), magnitude(shape.rows, shape.cols);
  ops::reference::gemm(turn_a, turn_b, 1.5, to_double(a), to_double(b), 0, product);
  ops::reference::gemm(turn_a, turn_b, 1.5, absolute(to_double(a)), absolute(to_double(b)), 0,
                       magnitude);
  testing::Tolerance tolerance = testing::tolerance_of(arithmetic);
  if (std::is_same_v<T, Float16>) tolerance.of_result = 0x1p-11;
  if (arithmetic == Precision::tf32) tolerance.of_magnitude = 1e-3;
  for (const auto [beta, margin] : forms) {
    SCOPED_TRACE(::testing::Message()
                 << shape.rows << " x " << shape.cols << " x " << shape.inner << " turned "
                 << static_cast<int>(turn_a) << static_cast<int>(turn_b) << " beta " << beta
                 << " margin " << margin);
    DeviceMatrix<T> a_there(a, device, margin), b_there(b, device, margin);
    DeviceMatrix<T> c(start, device, margin);
    const auto run = [&] {
      ops::gemm(turn_a, turn_b, 1.5, a_there, b_there, beta, c, device, {}, workspace_on(device),
                arithmetic);
    };
    run();
    Matrix<double> expected = to_double(start), of_terms = absolute(to_double(start));
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      expected.data()[i] = product.data()[i] + beta * expected.data()[i];
      of_terms.data()[i] = magnitude.data()[i] + beta * of_terms.data()[i];
    }
    EXPECT_EQ(testing::first_mismatch(c.values().view(), expected, of_terms, tolerance), "");
    const Matrix<T> once = c.values();
    c.set(start);
    run();
    EXPECT_TRUE(same_bits(once, c.values())) << "twice";
  }
}

}  // namespace tessera::test
