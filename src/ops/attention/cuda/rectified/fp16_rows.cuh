// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// 16-bit features as pairs of fp16, and how large they are. bf16 loses nothing by that where fp16
/// has the range; below 2^-14 it is off by 2^-25 at most.
namespace tessera::ops {

/// Looks after the largest magnitude of what it converts. Infinity and not-a-number are larger than
/// any number.
template <class T>
class Fp16Pairs {
 public:
  __device__ std::uint32_t convert(std::uint32_t pair) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
      const __half2 converted =
          __floats2half2_rn(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
      pair = reinterpret_cast<const std::uint32_t&>(converted);
    }
    largest_ = __vmaxu2(largest_, pair & 0x7fff7fffu);
    return pair;
  }
  /// Eight features.
  __device__ uint4 convert(const uint4& unit) {
    return {convert(unit.x), convert(unit.y), convert(unit.z), convert(unit.w)};
  }

  /// As the bits of an fp16, over the lanes of a warp.
  __device__ unsigned largest_of_warp() const {
    const unsigned low = largest_ & 0xffffu;
    const unsigned high = largest_ >> 16;
    return __reduce_max_sync(~0u, low > high ? low : high);
  }

 private:
  std::uint32_t largest_ = 0;
};

__device__ inline float magnitude_of_bits(unsigned bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

/// max(0, x + y) of two pairs: one instruction.
__device__ inline std::uint32_t rectified_sum(std::uint32_t x, std::uint32_t y) {
  constexpr std::uint32_t ones = 0x3c003c00u;
  std::uint32_t sum;
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(ones), "r"(y));
  return sum;
}

}  // namespace tessera::ops
