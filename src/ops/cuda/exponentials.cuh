// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Exponentials as powers of two.
namespace tessera::ops {

inline constexpr float log2_of_e = 1.44269504088896340736f;
inline constexpr float ln_of_2 = 0.69314718055994530942f;

/// 2^x by the GPU's own instruction, right to 2^-22; what is below the normal numbers is 0.
__device__ inline float power_of_2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ inline float exponential(float x) { return power_of_2(x * log2_of_e); }

/// Below every finite score: its differences to them are finite or -inf, never not-a-number.
inline constexpr float lowest_base = -3.402823466e38f;

}  // namespace tessera::ops
