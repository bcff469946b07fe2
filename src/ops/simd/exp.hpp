// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/lanes.hpp"

/// exp and log of a whole vector, for the softmax kernels, within 2 units in the last place.
namespace tessera::ops::TESSERA_ISA {

template <class Scalar>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Integer = std::int32_t;
  static constexpr float lowest = -87.0f;  ///< results are 0 below
  static constexpr float log2_e = 1.44269504f;
  /// ln 2 in two parts; the first has so few bits that a multiple of it is exact.
  static constexpr float ln2_high = 0.693359375f;
  static constexpr float ln2_low = -2.12194440e-4f;
  static constexpr int mantissa_bits = 23;
  /// Adding 1.5 * 2^23 leaves the nearest integer in the lowest bits; 127 more make it an exponent.
  static constexpr float rounder = 12582912.0f + 127.0f;
  static constexpr float sqrt_half = 0.707106781f;
  static constexpr int log_terms = 5;
};

template <>
struct ExpConstants<double> {
  using Integer = std::int64_t;
  static constexpr double lowest = -708.0;
  static constexpr double log2_e = 1.4426950408889634074;
  static constexpr double ln2_high = 0.693147180369123816490;
  static constexpr double ln2_low = 1.90821492927058770002e-10;
  static constexpr int mantissa_bits = 52;
  static constexpr double rounder = 6755399441055744.0 + 1023.0;
  static constexpr double sqrt_half = 0.70710678118654752440;
  static constexpr int log_terms = 11;
};

static constexpr double reciprocal_factorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return 1 / product;
}

/// The terms of exp(r) from r^2 on, added to `lower`, for |r| <= ln 2 / 2. The coefficients make
/// the largest relative error of exp(r) smallest: 3e-9.
template <class Vector>
TESSERA_INLINE Vector add_exp_terms(Vector r, Vector lower, float) {
  const Vector square = r * r;
  const Vector middle = r * 0.166665206f + 0.499999934f;
  const Vector high = square * 1.38145985e-3f + (r * 8.36871688e-3f + 4.16683880e-2f);
  return (high * square + middle) * square + lower;
}
/// The same by Taylor's series.
template <class Vector>
TESSERA_INLINE Vector add_exp_terms(Vector r, Vector lower, double) {
  constexpr int degree = 13;
  Vector sum = Vector{} + reciprocal_factorial(degree);
  unrolled<degree - 2>(
      [&](auto i) TESSERA_INLINED { sum = sum * r + reciprocal_factorial(degree - 1 - i.value); });
  return sum * (r * r) + lower;
}

/// x = n ln 2 + r with |r| <= ln 2 / 2; exp(x) = 2^n exp(r).
template <class Scalar, int N>
struct ExpParts {
  Lanes<Scalar, N> scale;  ///< 2^n
  Lanes<Scalar, N> r;
};

template <class Scalar, int N>
TESSERA_INLINE ExpParts<Scalar, N> exp_parts(Lanes<Scalar, N> x) {
  using Constants = ExpConstants<Scalar>;
  using Vector = Lanes<Scalar, N>;
  using Integers = Lanes<typename Constants::Integer, N>;
  const Vector shifted = x * Constants::log2_e + Constants::rounder;
  const Vector n = shifted - Constants::rounder;
  ExpParts<Scalar, N> parts;
  parts.r = x - n * Constants::ln2_high;
  parts.r = parts.r - n * Constants::ln2_low;
  Integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  const Integers scale_bits = bits << Constants::mantissa_bits;
  __builtin_memcpy(&parts.scale, &scale_bits, sizeof parts.scale);
  return parts;
}

/// For the arguments of a softmax, which are at most 0 up to rounding: exact at 0, at -inf and for
/// not-a-number; 0 instead of a subnormal number. Arguments above 88 (fp64: 709) give anything.
template <class Scalar, int N>
TESSERA_INLINE Lanes<Scalar, N> exp_lanes(Lanes<Scalar, N> x) {
  const ExpParts<Scalar, N> parts = exp_parts<Scalar, N>(x);
  const Lanes<Scalar, N> result =
      add_exp_terms<Lanes<Scalar, N>>(parts.r, parts.r + Scalar{1}, Scalar{}) * parts.scale;
  // The comparison is false for not-a-number, which therefore passes.
  return select_where<Scalar, N>(x < ExpConstants<Scalar>::lowest, Lanes<Scalar, N>{}, result);
}

/// exp(x) - 1 with all its digits near 0 as well, for arguments as above: 2^n (exp(r) - 1) + 2^n
/// - 1.
template <class Scalar, int N>
TESSERA_INLINE Lanes<Scalar, N> exp_minus_one_lanes(Lanes<Scalar, N> x) {
  using Vector = Lanes<Scalar, N>;
  const ExpParts<Scalar, N> parts = exp_parts<Scalar, N>(x);
  const Vector result =
      add_exp_terms<Vector>(parts.r, parts.r, Scalar{}) * parts.scale + (parts.scale - Scalar{1});
  return select_where<Scalar, N>(x < ExpConstants<Scalar>::lowest, Vector{} - Scalar{1}, result);
}

/// For sums of exponentials: positive normal numbers, infinity, 0 (whose log is -inf), and
/// not-a-number.
///
/// x = 2^n m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s) with s = (m - 1) / (m + 1), of
/// which the series is summed.
template <class Scalar, int N>
TESSERA_INLINE Lanes<Scalar, N> log_lanes(Lanes<Scalar, N> x) {
  using Constants = ExpConstants<Scalar>;
  using Integer = typename Constants::Integer;
  using Vector = Lanes<Scalar, N>;
  using Integers = Lanes<Integer, N>;
  Integer sqrt_half_bits;
  const Scalar sqrt_half = Constants::sqrt_half;
  __builtin_memcpy(&sqrt_half_bits, &sqrt_half, sizeof sqrt_half_bits);
  Integers bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const Integers exponent = (bits - sqrt_half_bits) >> Constants::mantissa_bits;
  const Integers mantissa_bits = bits - (exponent << Constants::mantissa_bits);
  Vector mantissa, n;
  __builtin_memcpy(&mantissa, &mantissa_bits, sizeof mantissa);
  if constexpr (N == 1) {
    n = static_cast<Scalar>(exponent);
  } else {
    n = __builtin_convertvector(exponent, Vector);
  }
  const Vector s = (mantissa - Scalar{1}) / (mantissa + Scalar{1});
  const Vector square = s * s;
  Vector series = Vector{} + Scalar{1} / (2 * Constants::log_terms - 1);
  unrolled<Constants::log_terms - 1>([&](auto i) TESSERA_INLINED {
    constexpr int odd = 2 * (Constants::log_terms - 2 - i.value) + 1;
    series = series * square + Scalar{1} / odd;
  });
  const Vector result = n * Constants::ln2_high + (n * Constants::ln2_low + 2 * s * series);
  const Vector lowest = Vector{} - static_cast<Scalar>(__builtin_inf());
  const Vector positive = select_where<Scalar, N>(x == Scalar{0}, lowest, result);
  const Vector highest = -lowest;
  return select_where<Scalar, N>(x < highest, positive, x);
}

}  // namespace tessera::ops::TESSERA_ISA
