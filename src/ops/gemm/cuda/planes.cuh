// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

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

  /// To where four numbers lie in the first plane, the others so many bytes apart.
  __device__ void keep(void* place, int plane_bytes) const {
#pragma unroll
    for (int plane = 0; plane < num_planes; ++plane) {
      *reinterpret_cast<uint2*>(static_cast<char*>(place) + plane * plane_bytes) =
          make_uint2(words[plane][0], words[plane][1]);
    }
  }
};

/// Calls `visit(left, right)` for the products of planes that count, the smallest first: those of
/// the others are below the last bit of fp32.
template <int planes = num_planes, class Visit>
__device__ void each_plane_pair(Visit&& visit) {
  constexpr int pairs[6][2] = {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}};
#pragma unroll
  for (const auto& [p, q] : pairs) {
    if (p < planes && q < planes) visit(p, q);
  }
}

}  // namespace tessera::ops
