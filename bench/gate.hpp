// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"

/// The check that comes before every measurement.
namespace tessera::bench {

struct Gate {
  /// max |y' - y| / magnitude, where the magnitude of a sum is the sum of its absolute products.
  double max_error = 0;
  double bound = 0;
  std::int64_t rows_checked = 0;
  std::int64_t rows_total = 0;

  bool passed() const noexcept { return max_error <= bound; }
};

/// The largest error that a result stored in this precision may have. Kernels that are not strict
/// (ops::KernelInfo) may have that of sums on tensor cores.
double error_bound(Precision precision, bool strict = true);

/// What two sums in double over this many terms of one sign may differ by, as a share of the sum,
/// when they add in different orders: roundings mostly cancel. The reference is one of the two, so
/// on long rows of positive terms this matters beside the bound of fp64.
double double_rounding(std::int64_t terms);

/// |computed - expected| / magnitude; 0 where both are not a number, infinite where only one is, or
/// where something appears out of nothing.
double error_of(double computed, double expected, double magnitude);

/// The largest error over two matrices of one shape.
template <class T>
double largest_error(MatrixView<T> computed, MatrixView<const double> expected,
                     MatrixView<const double> magnitude) {
  double worst = 0;
  for (std::int64_t i = 0; i < expected.rows; ++i) {
    for (std::int64_t j = 0; j < expected.cols; ++j) {
      const double error =
          error_of(static_cast<double>(computed(i, j)), expected(i, j), magnitude(i, j));
      if (error > worst) worst = error;
    }
  }
  return worst;
}

}  // namespace tessera::bench
