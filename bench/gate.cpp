// SPDX-License-Identifier: Apache-2.0
#include "bench/gate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/number_limits.hpp"

namespace tessera::bench {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// How far a result may be off that is stored in this precision.
double rounding_bound(Precision precision, bool strict) {
  const double fp32_sum = strict ? 2e-6 : 1e-5;
  switch (precision) {
    case Precision::fp64: return 1e-14;
    case Precision::bf16: return fp32_sum + 0x1p-8;
    case Precision::fp16: return fp32_sum + 0x1p-11;
    case Precision::fp32:
    case Precision::tf32: break;
  }
  return fp32_sum;
}

/// What a sum in double over this many terms of one sign may be off by, as a share of it: roundings
/// mostly cancel.
double double_rounding(std::int64_t terms) {
  return 4 * std::sqrt(static_cast<double>(terms)) * 0x1p-53;
}

Precision sums_in(Precision stored) {
  return stored == Precision::fp64 ? Precision::fp64 : Precision::fp32;
}

}  // namespace

ErrorMeasure::ErrorMeasure(const MeasureOf& of)
    : bound_(rounding_bound(of.stored, of.strict) + double_rounding(of.terms) + of.more),
      first_infinite_(limits_of(of.stored).first_infinite),
      sum_limit_(limits_of(sums_in(of.stored)).largest) {
  const double step_of_sums = limits_of(sums_in(of.stored)).smallest_step;
  tiny_ = limits_of(of.stored).smallest_step / 2 +
          step_of_sums * static_cast<double>(of.terms) * std::max(1.0, of.factor);
}

double ErrorMeasure::error_of(double computed, double expected, double magnitude,
                              double partial) const {
  if (computed == expected) return 0;
  if (std::isnan(expected)) return std::isnan(computed) ? 0 : infinity;
  if (std::isinf(expected)) return infinity;
  if (!std::isfinite(computed) && partial >= sum_limit_) return 0;
  if (std::isnan(computed)) return infinity;
  double distance = std::abs(computed - expected);
  if (std::isinf(computed)) {
    if (std::signbit(computed) != std::signbit(expected)) return infinity;
    // What is infinite after rounding was at least the first number that is.
    distance = std::max(0.0, first_infinite_ - std::abs(expected));
  }
  return distance <= tiny_ ? 0 : (distance - tiny_) / magnitude;
}

}  // namespace tessera::bench
