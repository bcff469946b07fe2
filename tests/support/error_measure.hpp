// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "tessera/core/dtype.hpp"
#include "tessera/core/matrix.hpp"

/// How far a kernel may be from the reference.
namespace tessera::testing {

struct Tolerance {
  double of_magnitude = 0;  ///< of the sum of absolute products behind an element
  double of_result = 0;     ///< of the element itself: rounding to 16 bits
  double absolute = 0;      ///< rounding of the smallest numbers
  bool admits_nan = false;  ///< a tile kernel may turn a row into NaN because of another one
};

inline Tolerance tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::fp64: return {1e-14, 0};
    case Precision::bf16: return {2e-6, 0x1p-8};
    case Precision::fp16: return {2e-6, 0x1p-11, 0x1p-25};
    default: return {2e-6, 0};
  }
}

inline bool close(double computed, double expected, double magnitude, Tolerance tolerance) {
  if (tolerance.admits_nan && std::isnan(computed)) return true;
  if (std::isnan(expected)) return std::isnan(computed);
  if (std::isinf(expected)) return computed == expected;
  return std::abs(computed - expected) <= tolerance.of_magnitude * magnitude +
                                              tolerance.of_result * std::abs(expected) +
                                              tolerance.absolute;
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
