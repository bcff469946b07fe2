// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::cuda {

/// Two numbers as bf16, the first in the low half. Finite ones stay finite: the largest fp32
/// numbers would be rounded to infinity.
__device__ inline std::uint32_t nearest_finite_bf16(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

}  // namespace tessera::cuda
