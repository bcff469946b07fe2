// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "tessera/core/matrix.hpp"

namespace tessera::testing {

/// Compares a gradient with central differences of `loss()`, which reads `variable`. Returns the
/// first element that differs, in words; empty if there is none. The loss must be smooth around
/// the point: for max and min no two products may be closer than `step`.
template <class Loss>
std::string gradient_mismatch(Matrix<double>& variable, const Matrix<double>& gradient, Loss&& loss,
                              double step = 1e-5, double tolerance = 1e-7) {
  for (std::int64_t i = 0; i < variable.rows(); ++i) {
    for (std::int64_t j = 0; j < variable.cols(); ++j) {
      const double saved = variable(i, j);
      variable(i, j) = saved + step;
      const double above = loss();
      variable(i, j) = saved - step;
      const double below = loss();
      variable(i, j) = saved;
      const double expected = (above - below) / (2 * step);
      const double scale = std::max({1.0, std::abs(expected), std::abs(gradient(i, j))});
      if (!(std::abs(gradient(i, j) - expected) <= tolerance * scale)) {
        return fmt::format("gradient ({}, {}) is {} but differences give {}", i, j, gradient(i, j),
                           expected);
      }
    }
  }
  return {};
}

/// sum of a[i][j] * b[i][j]: a loss whose gradient with respect to a is b.
inline double weighted_sum(const Matrix<double>& a, const Matrix<double>& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
  return sum;
}

}  // namespace tessera::testing
