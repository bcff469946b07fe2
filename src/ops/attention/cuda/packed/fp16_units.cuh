// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "ops/attention/cuda/tall/packed.cuh"

/// bf16 features as fp16, so that they meet weights of eleven digits. Nothing is lost where fp16
/// has the range: a feature of 2^-24 to 2^6 becomes a normal number when it is multiplied by 2^10.
namespace tessera::ops {

inline constexpr float fp16_unit_scale = 0x1p10f;

/// What features are multiplied by, and the bits of bf16 between which those lie that fp16 holds.
struct Fp16Scale {
  float factor = fp16_unit_scale;
  std::uint32_t first_small = (127u - 24) << 7;
  std::uint32_t first_large = (127u + 6) << 7;

  Fp16Scale() = default;
  /// For features of which the largest is known, by the bits of its size. Those that are up to
  /// 2^31 times smaller keep their eight digits.
  __device__ explicit Fp16Scale(std::uint32_t largest)
      : factor(factor_for(static_cast<int>(largest >> 7))),
        first_small((largest >> 7 > 41 ? (largest >> 7) - 31 : 10) << 7),
        first_large(is_finite(largest) ? 0xffffu : 0u) {}

  __device__ static bool is_finite(std::uint32_t largest) { return largest >> 7 < 255; }
  /// That puts numbers of this exponent, biased as in fp32, below 2^15; at most 2^100.
  __device__ static float factor_for(int exponent) {
    const int scaled = 141 - exponent;
    return __uint_as_float(static_cast<std::uint32_t>((scaled < 100 ? scaled : 100) + 127) << 23);
  }
};

/// Looks after the features of a thread: whether each is 0 or within the range.
class Fp16Range {
 public:
  Fp16Range() = default;
  __device__ explicit Fp16Range(const Fp16Scale& scale) : scale_(scale) {}

  /// Eight features, converted.
  __device__ uint4 convert(const uint4& unit) {
    return {convert(unit.x), convert(unit.y), convert(unit.z), convert(unit.w)};
  }
  /// What they were, if the range holds them.
  __device__ uint4 restore(const uint4& unit) const {
    return {restore(unit.x), restore(unit.y), restore(unit.z), restore(unit.w)};
  }

  __device__ bool holds() const {
    const std::uint32_t small = scale_.first_small;
    return (largest_ & 0xffffu) < scale_.first_large && (largest_ >> 16) < scale_.first_large &&
           (smallest_ & 0xffffu) + 1 >= small && (smallest_ >> 16) + 1 >= small;
  }

 private:
  __device__ std::uint32_t restore(std::uint32_t pair) const {
    const float back = 1 / scale_.factor;
    const float2 features = __half22float2(reinterpret_cast<const __half2&>(pair));
    return packed<__nv_bfloat16>(features.x * back, features.y * back);
  }
  __device__ std::uint32_t convert(std::uint32_t pair) {
    const std::uint32_t magnitudes = pair & 0x7fff7fffu;
    largest_ = __viaddmax_u16x2(magnitudes, 0, largest_);
    // One less than each, so that 0 is the largest there is.
    smallest_ = __viaddmin_u16x2(magnitudes, 0xffffffffu, smallest_);
    const __half2 converted =
        __floats2half2_rn(__uint_as_float(pair << 16) * scale_.factor,
                          __uint_as_float(pair & 0xffff0000u) * scale_.factor);
    return reinterpret_cast<const std::uint32_t&>(converted);
  }

  Fp16Scale scale_;
  std::uint32_t largest_ = 0;
  std::uint32_t smallest_ = 0xffffffffu;
};

}  // namespace tessera::ops
