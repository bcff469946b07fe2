// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "tessera/core/dtype.hpp"

/// Where the numbers of a precision end.
namespace tessera {

struct NumberLimits {
  double largest = 0;
  /// The smallest number that rounds to infinity: half a step beyond the largest.
  double first_infinite = 0;
  /// The distance between neighbours among the smallest numbers.
  double smallest_step = 0;
};

constexpr NumberLimits limits_of(Precision precision) {
  switch (precision) {
    case Precision::fp16: return {65504, 65520, 0x1p-24};
    case Precision::bf16: return {0x1.fep127, 0x1.ffp127, 0x1p-133};
    case Precision::fp64:
      return {std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity(),
              std::numeric_limits<double>::denorm_min()};
    case Precision::fp32:
    case Precision::tf32: break;
  }
  return {0x1.fffffep127, 0x1.ffffffp127, 0x1p-149};
}

}  // namespace tessera
