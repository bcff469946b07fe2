// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// Pairs of 16-bit numbers, as operands of matrix instructions hold them.
namespace tessera::ops {

template <class T>
__device__ std::uint32_t packed(float low, float high) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
}

template <class T>
__device__ float2 unpacked(std::uint32_t pair) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  } else {
    return __half22float2(reinterpret_cast<const __half2&>(pair));
  }
}

/// Each sign in all bits of a half. CUDA's function for this instruction cannot repeat signs.
__device__ inline std::uint32_t signs_over_halves(float low, float high) {
  std::uint32_t signs;
  asm("prmt.b32 %0, %1, %2, 0xffbb;"
      : "=r"(signs)
      : "r"(__float_as_uint(low)), "r"(__float_as_uint(high)));
  return signs;
}

/// Two numbers as halves of a word, and what they lost by that, likewise: together they are as good
/// as twice the digits.
template <class T>
struct PackedTwice {
  std::uint32_t high;
  std::uint32_t low;

  __device__ PackedTwice(float even, float odd) : high(packed<T>(even, odd)) {
    const float2 kept = unpacked<T>(high);
    low = packed<T>(even - kept.x, odd - kept.y);
  }
};

}  // namespace tessera::ops
