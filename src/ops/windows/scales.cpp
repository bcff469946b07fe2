// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/values.hpp"

#include <cmath>

#include <fmt/format.h>

namespace tessera::ops {
namespace {

/// fp16 holds 11 bits from 2^-14 on, and steps of 2^-24 below: the low part of a scale of 2^-8
/// still brings the error under 2^-17 of it.
constexpr int largest_exponent = 15;
constexpr int smallest_exponent = -8;

/// Below, the low part of a weight would be among the smallest numbers of bf16, which has fp32's
/// exponents, and the factor that brings weights into the range of fp16 would be none.
constexpr float smallest_weight = 0x1p-100f;

/// Beyond, the high part of a weight may be rounded to infinity.
constexpr float largest_weight = 0x1p127f;

}  // namespace

float scale_factor(const SizeRange& range, Precision precision) {
  if (precision != Precision::fp16) return 1;
  if (range.largest == 0) return 1;
  return std::ldexp(1.0f, largest_exponent - 1 - std::ilogb(range.largest));
}

std::string why_not_scales(const SizeRange& range, Precision precision) {
  if (!range.all_finite) return "weights that are not finite";
  if (range.largest == 0) return {};
  if (range.smallest < smallest_weight) {
    return fmt::format("weights as small as {:.1e}", range.smallest);
  }
  if (precision != Precision::fp16) {
    if (range.largest <= largest_weight) return {};
    return fmt::format("weights as large as {:.1e}", range.largest);
  }
  const bool narrow = std::ilogb(range.largest) - std::ilogb(range.smallest) <
                      largest_exponent - 1 - smallest_exponent;
  return narrow ? "" : "weights differ by more than fp16 holds";
}

}  // namespace tessera::ops
