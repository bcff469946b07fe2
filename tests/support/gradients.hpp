// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "tessera/core/matrix.hpp"

namespace tessera::test {

/// Checks `gradient` against central differences of `loss()`, a function of what `variable` holds.
template <class Loss>
void expect_gradient(Loss&& loss, MatrixView<double> variable, MatrixView<const double> gradient,
                     double step = 1e-6, double tolerance = 1e-7) {
  ASSERT_EQ(variable.rows, gradient.rows);
  ASSERT_EQ(variable.cols, gradient.cols);
  for (std::int64_t i = 0; i < variable.rows; ++i) {
    for (std::int64_t j = 0; j < variable.cols; ++j) {
      const double before = variable(i, j);
      variable(i, j) = before + step;
      const double above = loss();
      variable(i, j) = before - step;
      const double below = loss();
      variable(i, j) = before;
      const double difference = (above - below) / (2 * step);
      EXPECT_NEAR(gradient(i, j), difference, tolerance * (1 + std::abs(difference)))
          << "at row " << i << ", column " << j;
    }
  }
}

/// The sum of all products of elements: a scalar whose gradient in `a` is `b`.
inline double inner_product(MatrixView<const double> a, MatrixView<const double> b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) sum += a(i, j) * b(i, j);
  }
  return sum;
}

}  // namespace tessera::test
