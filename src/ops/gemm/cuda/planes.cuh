// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

/// fp32 numbers as sums of three bf16 numbers, so that tensor cores multiply them without losing a
/// digit: h + m + l is the number itself as long as none of them falls below bf16's range.
namespace tessera::ops {

inline constexpr int num_planes = 3;
/// How many planes numbers of this type have: bf16 is one as it is.
template <class T>
inline constexpr int num_planes_of = sizeof(T) == 4 ? num_planes : 1;

/// Four neighbours: one pair of 32-bit words per plane, the largest parts first. A number that is
/// not finite, or too large for bf16, leaves a not-a-number in a plane, and so in every sum.
struct FourInPlanes {
  std::uint32_t words[num_planes][2];

  __device__ explicit FourInPlanes(const float (&values)[4]) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      float first = values[2 * pair];
      float second = values[2 * pair + 1];
#pragma unroll
      for (int plane = 0; plane < num_planes; ++plane) {
        const __nv_bfloat162 rounded = __floats2bfloat162_rn(first, second);
        const auto both = *reinterpret_cast<const std::uint32_t*>(&rounded);
        words[plane][pair] = both;
        first -= __uint_as_float(both << 16);
        second -= __uint_as_float(both & 0xffff0000u);
      }
    }
  }
};

/// The same of bf16, a plane as it is.
struct FourAsTheyAre {
  std::uint32_t words[1][2];

  __device__ explicit FourAsTheyAre(const __nv_bfloat16 (&values)[4]) {
    const auto& pairs = reinterpret_cast<const std::uint32_t(&)[2]>(values);
    words[0][0] = pairs[0];
    words[0][1] = pairs[1];
  }
};

template <class T>
using FourOf = std::conditional_t<sizeof(T) == 4, FourInPlanes, FourAsTheyAre>;

/// Calls `add(p, q)` for the products of planes that are added, the smallest first: all but those
/// below the last bit of fp32.
template <class T, class Add>
__device__ void for_plane_pairs(Add&& add) {
  constexpr int pairs[6][2] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
#pragma unroll
  for (int i = num_planes_of<T> == 1 ? 5 : 0; i < 6; ++i) add(pairs[i][0], pairs[i][1]);
}

}  // namespace tessera::ops
