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

/// What a measure has to know of the results that it judges.
struct MeasureOf {
  Precision stored = Precision::fp32;
  /// Kernels that are not strict (ops::KernelInfo) may have the error of sums on tensor cores.
  bool strict = true;
  /// How many the longest sum has: in double, roundings count beside the bound.
  std::int64_t terms = 1;
  /// What sums are multiplied by at the end, at most: what the smallest numbers lost grows with it.
  double factor = 1;
  /// What an op has beside the error of its sums.
  double more = 0;
};

/// How far results stored in a precision are from the reference, and how far they may be.
///
/// An error counts beyond half a step of the smallest numbers (those of the result, and of fp32 for
/// each term of a sum), as a share of the magnitude. What is too large for the precision must be
/// the infinity that rounding gives. Where the terms of a sum together pass the end of the type
/// that sums, what is not finite is right, too: it may have come up on the way.
class ErrorMeasure {
 public:
  explicit ErrorMeasure(const MeasureOf& of);

  /// The largest error that is allowed.
  double bound() const noexcept { return bound_; }

  /// 0 where both are not a number, infinite where only one is, or where something appears out of
  /// nothing. `partial` is the magnitude of the sum before it was scaled.
  double error_of(double computed, double expected, double magnitude, double partial) const;
  double error_of(double computed, double expected, double magnitude) const {
    return error_of(computed, expected, magnitude, magnitude);
  }

  /// The largest error over two matrices of one shape.
  template <class T>
  double largest_error(MatrixView<T> computed, MatrixView<const double> expected,
                       MatrixView<const double> magnitude) const {
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

 private:
  double bound_;
  double tiny_;            ///< error that the smallest numbers may have
  double first_infinite_;  ///< of the stored type
  double sum_limit_;       ///< of the type that sums
};

}  // namespace tessera::bench
