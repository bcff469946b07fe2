// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/lanes.hpp"

/// exp of a whole vector, for the softmax kernels. Within 2 ulp; exact at 0, at both infinities and
/// for not-a-number; small results go through the subnormal numbers to 0.
namespace tessera::ops::TESSERA_ISA {

template <class Scalar>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Integer = std::int32_t;
  static constexpr float lowest = -104.0f;  ///< exp rounds to 0 below
  static constexpr float highest = 89.0f;   ///< and to infinity above
  static constexpr float log2_e = 1.44269504f;
  /// ln 2 in two parts; the first has so few bits that a multiple of it is exact.
  static constexpr float ln2_high = 0.693359375f;
  static constexpr float ln2_low = -2.12194440e-4f;
  /// Adding 1.5 * 2^23 leaves the nearest integer in the lowest bits.
  static constexpr float rounder = 12582912.0f;
  static constexpr int mantissa_bits = 23;
  static constexpr Integer bias = 127;
  static constexpr int degree = 7;
};

template <>
struct ExpConstants<double> {
  using Integer = std::int64_t;
  static constexpr double lowest = -746.0;
  static constexpr double highest = 710.0;
  static constexpr double log2_e = 1.4426950408889634074;
  static constexpr double ln2_high = 0.693147180369123816490;
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr double rounder = 6755399441055744.0;
  static constexpr int mantissa_bits = 52;
  static constexpr Integer bias = 1023;
  static constexpr int degree = 13;
};

static constexpr double reciprocal_factorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return 1 / product;
}

/// x = n ln 2 + r with |r| <= ln 2 / 2; exp(x) = 2^n * (Taylor series of r), whose remainder is
/// below half a unit in the last place.
template <class Scalar, int N>
TESSERA_INLINE Lanes<Scalar, N> exp_lanes(Lanes<Scalar, N> x) {
  using Constants = ExpConstants<Scalar>;
  using Integer = typename Constants::Integer;
  using Vector = Lanes<Scalar, N>;
  using Integers = Lanes<Integer, N>;
  // Comparisons are false for not-a-number, which therefore passes.
  x = x < Constants::lowest ? Vector{} + Constants::lowest : x;
  x = x > Constants::highest ? Vector{} + Constants::highest : x;
  const Vector shifted = x * Constants::log2_e + Constants::rounder;
  const Vector n = shifted - Constants::rounder;
  Vector r = x - n * Constants::ln2_high;
  r = r - n * Constants::ln2_low;
  Vector sum = Vector{} + static_cast<Scalar>(reciprocal_factorial(Constants::degree));
  unrolled<Constants::degree>([&](auto i) __attribute__((always_inline)) {
    constexpr int power = Constants::degree - 1 - i.value;
    sum = sum * r + static_cast<Scalar>(reciprocal_factorial(power));
  });
  // 2^n in two factors: n alone may be beyond what one exponent holds.
  Vector rounder = Vector{} + Constants::rounder;
  Integers shifted_bits, rounder_bits;
  __builtin_memcpy(&shifted_bits, &shifted, sizeof shifted_bits);
  __builtin_memcpy(&rounder_bits, &rounder, sizeof rounder_bits);
  const Integers exponent = shifted_bits - rounder_bits;
  const Integers half = exponent >> 1;
  const Integers first_bits = (half + Constants::bias) << Constants::mantissa_bits;
  const Integers second_bits = (exponent - half + Constants::bias) << Constants::mantissa_bits;
  Vector first, second;
  __builtin_memcpy(&first, &first_bits, sizeof first);
  __builtin_memcpy(&second, &second_bits, sizeof second);
  return sum * first * second;
}

}  // namespace tessera::ops::TESSERA_ISA
