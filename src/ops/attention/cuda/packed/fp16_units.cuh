// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

/// bf16 features as fp16, so that they meet weights of eleven digits. Nothing is lost where fp16
/// has the range: a feature of 2^-24 to 2^6 becomes a normal number when it is multiplied by 2^10.
namespace tessera::ops {

inline constexpr float fp16_unit_scale = 0x1p10f;

/// Looks after the features of a thread: whether each is 0 or within the range.
class Fp16Range {
 public:
  /// Eight features, converted.
  __device__ uint4 convert(const uint4& unit) {
    return {convert(unit.x), convert(unit.y), convert(unit.z), convert(unit.w)};
  }

  __device__ bool holds() const {
    constexpr std::uint32_t first_large = (127u + 6) << 7;
    constexpr std::uint32_t first_small = (127u - 24) << 7;
    return (largest_ & 0xffffu) < first_large && (largest_ >> 16) < first_large &&
           (smallest_ & 0xffffu) + 1 >= first_small && (smallest_ >> 16) + 1 >= first_small;
  }

 private:
  __device__ std::uint32_t convert(std::uint32_t pair) {
    const std::uint32_t magnitudes = pair & 0x7fff7fffu;
    largest_ = __viaddmax_u16x2(magnitudes, 0, largest_);
    // One less than each, so that 0 is the largest there is.
    smallest_ = __viaddmin_u16x2(magnitudes, 0xffffffffu, smallest_);
    const __half2 converted =
        __floats2half2_rn(__uint_as_float(pair << 16) * fp16_unit_scale,
                          __uint_as_float(pair & 0xffff0000u) * fp16_unit_scale);
    return reinterpret_cast<const std::uint32_t&>(converted);
  }

  std::uint32_t largest_ = 0;
  std::uint32_t smallest_ = 0xffffffffu;
};

}  // namespace tessera::ops
