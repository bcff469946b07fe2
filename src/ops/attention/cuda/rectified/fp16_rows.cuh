// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "ops/attention/cuda/tall/launch.hpp"

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

/// The sources of tiles as fp16.
template <class Planes, int num_stages>
struct Fp16Tiles {
  using Rows = typename Planes::Rows;
  static constexpr int num_warps = tall_attention_threads / 32;

  /// Converts what this thread has brought of the first `num_rows` rows of a tile, be it to the
  /// same memory or another.
  template <class T>
  __device__ static void convert(const char* from, char* to, int turn, int num_rows) {
    Fp16Pairs<T> pairs;
#pragma unroll
    for (int i = 0; i < Planes::share; ++i) {
      const int row = Rows::row_of_thread(i);
      if (row >= num_rows) continue;
      const std::uint32_t at = Rows::offset(row, static_cast<int>(threadIdx.x) % Rows::units);
      const uint4 converted = pairs.convert(*reinterpret_cast<const uint4*>(from + at));
      if (from != to || !std::is_same_v<T, __half>) *reinterpret_cast<uint4*>(to + at) = converted;
    }
    const unsigned largest = pairs.largest_of_warp();
    if (threadIdx.x % 32 == 0) tops()[turn % num_stages][threadIdx.x / 32] = largest;
  }

  /// The largest magnitude of a tile that all threads have converted.
  __device__ static float largest(int turn) {
    unsigned top = 0;
#pragma unroll
    for (int warp = 0; warp < num_warps; ++warp) {
      const unsigned other = tops()[turn % num_stages][warp];
      top = top > other ? top : other;
    }
    return __half2float(__ushort_as_half(static_cast<unsigned short>(top)));
  }

 private:
  /// What the warps have found, as bits of fp16.
  using Tops = unsigned[num_warps];
  __device__ static Tops* tops() {
    __shared__ Tops tops[num_stages];
    return tops;
  }
};

/// max(0, x + y) of two pairs: one instruction.
__device__ inline std::uint32_t rectified_sum(std::uint32_t x, std::uint32_t y) {
  constexpr std::uint32_t ones = 0x3c003c00u;
  std::uint32_t sum;
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(x), "r"(ones), "r"(y));
  return sum;
}

}  // namespace tessera::ops
