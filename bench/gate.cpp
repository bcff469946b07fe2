// SPDX-License-Identifier: Apache-2.0
#include "bench/gate.hpp"

#include <cmath>
#include <limits>

namespace tessera::bench {

double error_bound(Precision precision, bool strict) {
  const double fp32_sum = strict ? 2e-6 : 1e-5;
  switch (precision) {
    case Precision::fp64: return 1e-14;
    case Precision::bf16: return fp32_sum + 0x1p-8;
    case Precision::fp16: return fp32_sum + 0x1p-11;
    case Precision::fp32:
    case Precision::tf32: return fp32_sum;
  }
  return fp32_sum;
}

double double_rounding(std::int64_t terms) {
  return 4 * std::sqrt(static_cast<double>(terms)) * 0x1p-53;
}

double error_of(double computed, double expected, double magnitude) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(expected) || std::isnan(computed)) {
    return std::isnan(expected) && std::isnan(computed) ? 0 : infinity;
  }
  if (computed == expected) return 0;
  if (std::isinf(expected) || std::isinf(computed)) return infinity;
  return std::abs(computed - expected) / magnitude;
}

}  // namespace tessera::bench
