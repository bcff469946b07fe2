// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

/// From bits to the registers of A. A register holds two neighbouring columns of a row, the even
/// one in its low half; tiles/fragment.hpp says which bits they are.
namespace tessera::ops {

/// 1.0 where there is an edge. It has several bits: a mask leaves one for each half of the
/// register, and a product with what they should become moves and spreads them at once.
template <class T, int steps>
__device__ void expand_pattern(std::uint32_t word, std::uint32_t (&values)[steps][4]) {
  constexpr std::uint32_t one = std::is_same_v<T, __nv_bfloat16> ? 0x3f80u : 0x3c00u;
#pragma unroll
  for (int i = 0; i < 4 * steps; ++i) {
    const std::uint32_t half = i < 8 ? word : word >> 8;
    values[i / 4][i % 4] = (half & 0x00010001u << i % 8) * (one >> i % 8);
  }
}

/// The column's scale where there is an edge, as a high and a low part that add up to it.
template <int steps>
__device__ void expand_scaled(std::uint32_t word, const std::uint32_t* scales,
                              std::uint32_t (&high)[steps][4], std::uint32_t (&low)[steps][4]) {
  const int first_column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int upper_columns = 0; upper_columns < 2; ++upper_columns) {
      const auto pair =
          *reinterpret_cast<const uint2*>(scales + step * 16 + upper_columns * 8 + first_column);
      const std::uint32_t highs = __byte_perm(pair.x, pair.y, 0x5410);
      const std::uint32_t lows = __byte_perm(pair.x, pair.y, 0x7632);
#pragma unroll
      for (int upper_rows = 0; upper_rows < 2; ++upper_rows) {
        const int pair_register = 2 * upper_columns + upper_rows;
        const std::uint32_t mask = (word >> (4 * step + pair_register) & 0x00010001u) * 0xffffu;
        high[step][pair_register] = mask & highs;
        low[step][pair_register] = mask & lows;
      }
    }
  }
}

/// The values of a thread's edges, which follow each other in shared memory in the order of its
/// bits: of each half of a tile from registers 0 to 7 on, the even column before the odd one.
/// `firsts` says where those of each half begin.
template <int steps, class Put>
__device__ void expand_values(std::uint32_t word, const std::uint32_t (&firsts)[2],
                              const std::uint32_t* values, Put&& put) {
#pragma unroll
  for (int half = 0; half < (steps + 1) / 2; ++half) {
    const std::uint32_t* next = values + firsts[half];
#pragma unroll
    for (int i = 8 * half; i < 8 * half + 8; ++i) {
      const bool even = (word >> i & 1u) != 0;
      const bool odd = (word >> (i + 16) & 1u) != 0;
      const std::uint32_t first = even ? *next : 0u;
      next += even ? 1 : 0;
      const std::uint32_t second = odd ? *next : 0u;
      next += odd ? 1 : 0;
      put(i / 4, i % 4, first, second);
    }
  }
}

/// Two fp32 numbers as three pairs of bf16 numbers that add up to them exactly: eight bits each.
__device__ inline void split_exactly(float first, float second, std::uint32_t (&pairs)[3]) {
#pragma unroll
  for (int part = 0; part < 3; ++part) {
    pairs[part] = __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x7632);
    first -= __uint_as_float(__float_as_uint(first) & 0xffff0000u);
    second -= __uint_as_float(__float_as_uint(second) & 0xffff0000u);
  }
}

}  // namespace tessera::ops
