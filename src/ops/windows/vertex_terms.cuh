// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/softmax.cuh"
#include "ops/cuda/exponentials.cuh"
#include "ops/windows/number_pairs.cuh"

/// What the backward pass of GAT knows of a vertex, on windows of any height. All terms are in
/// powers of two.
namespace tessera::ops {

/// A term in powers of two. It is rounded before anything is added to it: terms that are opposite
/// have a sum of 0 then, and its sign is what tells the side.
__device__ inline float gat_power(float term) { return __fmul_rn(term, log2_of_e); }

/// Exponents of the factors that gathered rows are multiplied by. They leave room for the rows:
/// sums of a hundred thousand of them stay within fp32 if features are of 2^-100 to 2^100.
inline constexpr float least_gat_exponent = -20;
inline constexpr float largest_gat_exponent = 8;
__device__ inline bool is_extreme_exponent(float exponent) {
  return !(exponent >= least_gat_exponent && exponent <= largest_gat_exponent);
}

/// Factors of the window's own vertices multiply sums to what is not larger than the features: all
/// that counts is that they are finite and not 0.
inline constexpr float largest_own_exponent = 40;
__device__ inline bool is_extreme_own_exponent(float exponent) {
  return !(fabsf(exponent) <= largest_own_exponent);
}

/// What the sweep over rows leaves of a target and head.
struct alignas(16) GatRowState {
  float minus_l;       ///< 0 - l: +0 for 0, as the sign of minus_l - r is what tells the side
  float shift;         ///< what r is added to with a plus
  float sloped_shift;  ///< what slope times r is added to with a minus
  float d;
};

/// Which cells of two neighbouring columns have a plus, all bits of either half of a word: the own
/// term is larger than that of the column with a minus. Terms of bf16 are compared as they were
/// given, two at once.
template <class T>
struct SideTerms {
  using Own = float;
  using Column = float;
  using Pair = float2;
  __device__ static Own own(float term) { return term; }
  __device__ static float term_of(Own own) { return own; }
  __device__ static Column column(float minus_term) { return minus_term; }
  __device__ static float widened(Column minus_term) { return minus_term; }
  __device__ static std::uint32_t plus(Own own, const Pair& minus_terms) {
    return signs_over_halves(minus_terms.x - own, minus_terms.y - own);
  }
};
template <>
struct SideTerms<__nv_bfloat16> {
  using Own = std::uint32_t;  ///< twice
  using Column = __nv_bfloat16;
  using Pair = std::uint32_t;
  // To powers of two and back a number of bf16 is the same.
  __device__ static Own own(float term) {
    return packed<__nv_bfloat16>(term * ln_of_2, term * ln_of_2);
  }
  __device__ static float term_of(Own own) { return gat_power(unpacked<__nv_bfloat16>(own).x); }
  __device__ static Column column(float minus_term) {
    return __float2bfloat16_rn(minus_term * ln_of_2);
  }
  __device__ static float widened(Column minus_term) {
    return gat_power(__bfloat162float(minus_term));
  }
  __device__ static std::uint32_t plus(Own own, Pair minus_terms) {
    return __hgt2_mask(reinterpret_cast<const __nv_bfloat162&>(own),
                       reinterpret_cast<const __nv_bfloat162&>(minus_terms));
  }
};

/// A vertex of the window: a target by rows, whose weights are relative to its log_sum, or a
/// source.
template <class T, bool by_rows>
struct GatOwn;
template <class T>
struct GatOwn<T, true> {
  typename SideTerms<T>::Own side = {};
  float log_sum = 0;

  __device__ float term() const { return SideTerms<T>::term_of(side); }
  /// -inf for rows without edges, which nothing is computed for.
  __device__ float shift() const { return log_sum == -cuda::infinity ? 0 : term() - log_sum; }
  __device__ bool fails(float) const { return is_extreme_own_exponent(shift()); }
  __device__ float factor() const { return power_of_2(shift()); }
  __device__ GatRowState state(float slope, float d) const {
    return {0.0f - term(), term() - log_sum, fmaf(slope, term(), -log_sum), d};
  }
};
template <class T>
struct GatOwn<T, false> {
  typename SideTerms<T>::Own side = {};

  __device__ float term() const { return SideTerms<T>::term_of(side); }
  /// A slope may be of any size.
  __device__ bool fails(float slope) const {
    return is_extreme_own_exponent(term()) || is_extreme_own_exponent(slope * term());
  }
  __device__ float factor() const { return power_of_2(term()); }
  __device__ float sloped_factor(float slope) const { return power_of_2(slope * term()); }
};

/// The exponent of an edge's weight, and its side.
struct GatExponents {
  float exponent;
  bool plus;
};

/// A number in two parts, the high one in the low half.
__device__ inline std::uint32_t two_parts(float number) {
  const PackedTwice<__nv_bfloat16> parts(number, 0.0f);
  return __byte_perm(parts.high, parts.low, 0x5410);
}

}  // namespace tessera::ops
