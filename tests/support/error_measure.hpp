// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "core/number_limits.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"

/// How far a kernel may be from the reference.
namespace tessera::testing {

struct Tolerance {
  double of_magnitude = 0;  ///< of the sum of absolute products behind an element
  double of_result = 0;     ///< of the element itself: rounding to 16 bits
  double absolute = 0;      ///< rounding of the smallest numbers
  /// From here on numbers round to infinity.
  double first_infinite = std::numeric_limits<double>::infinity();
  bool admits_nan = false;  ///< a tile kernel may turn a row into NaN because of another one
};

inline Tolerance tolerance_of(Precision precision) {
  const NumberLimits limits = limits_of(precision);
  const auto tolerance = [&](double of_magnitude, double of_result) {
    return Tolerance{of_magnitude, of_result, limits.smallest_step / 2, limits.first_infinite};
  };
  switch (precision) {
    case Precision::fp64: return tolerance(1e-14, 0);
    case Precision::bf16: return tolerance(2e-6, 0x1p-8);
    case Precision::fp16: return tolerance(2e-6, 0x1p-11);
    default: return tolerance(2e-6, 0);
  }
}

inline bool close(double computed, double expected, double magnitude, Tolerance tolerance) {
  if (tolerance.admits_nan && std::isnan(computed)) return true;
  if (std::isnan(expected)) return std::isnan(computed);
  if (std::isinf(expected)) return computed == expected;
  const double slack = tolerance.of_magnitude * magnitude +
                       tolerance.of_result * std::abs(expected) + tolerance.absolute;
  if (std::isinf(computed)) {
    return std::signbit(computed) == std::signbit(expected) &&
           std::abs(expected) + slack >= tolerance.first_infinite;
  }
  return std::abs(computed - expected) <= slack;
}

/// What remains of a number stored as T.
template <class T>
double rounded_to(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return static_cast<double>(static_cast<T>(static_cast<float>(value)));
  }
}

/// The first element that is too far off, in words; empty if there is none.
template <class T>
std::string first_mismatch(MatrixView<T> computed, const Matrix<double>& expected,
                           const Matrix<double>& magnitude, Tolerance tolerance) {
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j < expected.cols(); ++j) {
      const auto value = static_cast<double>(computed(i, j));
      if (!close(value, expected(i, j), magnitude(i, j), tolerance)) {
        return fmt::format("element ({}, {}) is {} but should be {}; magnitude {}", i, j, value,
                           expected(i, j), magnitude(i, j));
      }
    }
  }
  return {};
}

}  // namespace tessera::testing
