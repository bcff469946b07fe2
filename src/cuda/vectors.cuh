// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

/// Loading several features at once and turning them into fp32.
namespace tessera::cuda {

/// What one load instruction moves.
template <int bytes>
struct RawVector;
template <>
struct RawVector<16> {
  using Type = uint4;
};
template <>
struct RawVector<8> {
  using Type = uint2;
};
template <>
struct RawVector<4> {
  using Type = std::uint32_t;
};
template <>
struct RawVector<2> {
  using Type = std::uint16_t;
};

__device__ inline float widen(float value) { return value; }
__device__ inline float widen(__nv_bfloat16 value) {
  // A shift: the conversion instruction has a fraction of its rate.
  return __uint_as_float(static_cast<std::uint32_t>(__bfloat16_as_ushort(value)) << 16);
}
__device__ inline float widen(__half value) { return __half2float(value); }

template <class T>
__device__ T narrow(float value);
template <>
__device__ inline float narrow<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half narrow<__half>(float value) {
  return __float2half_rn(value);
}

/// `bytes` bytes of features of type T, in registers as they lie in memory.
template <class T, int bytes>
struct Vector {
  using Raw = typename RawVector<bytes>::Type;
  static constexpr int count = bytes / static_cast<int>(sizeof(T));

  Raw raw;

  __device__ static Vector zero() { return {Raw{}}; }
  __device__ static Vector load(const void* from) { return {__ldg(static_cast<const Raw*>(from))}; }
  /// Zeros unless `wanted`: one load with a condition and no branch, so that several of them are in
  /// flight together.
  __device__ static Vector load_if(bool wanted, const void* from) {
    Vector vector = zero();
    if constexpr (bytes == 16) {
      asm("{ .reg .pred p; setp.ne.s32 p, %4, 0;\n"
          "  @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%5]; }"
          : "+r"(vector.raw.x), "+r"(vector.raw.y), "+r"(vector.raw.z), "+r"(vector.raw.w)
          : "r"(static_cast<int>(wanted)), "l"(from));
    } else if constexpr (bytes == 8) {
      asm("{ .reg .pred p; setp.ne.s32 p, %2, 0;\n"
          "  @p ld.global.nc.v2.u32 {%0, %1}, [%3]; }"
          : "+r"(vector.raw.x), "+r"(vector.raw.y)
          : "r"(static_cast<int>(wanted)), "l"(from));
    } else {
      if (wanted) vector = load(from);
    }
    return vector;
  }
  __device__ void store(void* to) const { *static_cast<Raw*>(to) = raw; }

  __device__ void widen_to(float (&values)[count]) const {
    if constexpr (std::is_same_v<T, __nv_bfloat16> && count > 1) {
      // The upper of two bf16 is an fp32 already, but for the bits of the lower: one mask.
      std::uint32_t words[count / 2];
      memcpy(words, &raw, bytes);
#pragma unroll
      for (int i = 0; i < count / 2; ++i) {
        values[2 * i] = __uint_as_float(words[i] << 16);
        values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
      }
    } else {
      T elements[count];
      memcpy(elements, &raw, bytes);
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = widen(elements[i]);
    }
  }
  __device__ static Vector narrowed(const float (&values)[count]) {
    T elements[count];
#pragma unroll
    for (int i = 0; i < count; ++i) elements[i] = narrow<T>(values[i]);
    Vector vector;
    memcpy(&vector.raw, elements, bytes);
    return vector;
  }
};

}  // namespace tessera::cuda
