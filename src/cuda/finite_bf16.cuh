// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <cstring>

namespace tessera::cuda {

/// Two numbers as bf16, the first in the low half. Finite ones stay finite: the largest fp32
/// numbers would be rounded to infinity.
__device__ inline std::uint32_t nearest_finite_bf16(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

/// Two numbers in two planes of bf16, of which the second holds what the first left. Infinity is in
/// the second.
__device__ inline void split_in_two_planes(float first, float second, std::uint32_t (&pairs)[2]) {
  pairs[0] = nearest_finite_bf16(first, second);
  first -= __uint_as_float(pairs[0] << 16);
  second -= __uint_as_float(pairs[0] & 0xffff0000u);
  const __nv_bfloat162 rest = __floats2bfloat162_rn(first, second);
  memcpy(&pairs[1], &rest, sizeof(rest));
}

}  // namespace tessera::cuda
