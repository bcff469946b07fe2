// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/elements.cuh"

namespace tessera::ops {

/// How many neighbours of a row one instruction may load, from any multiple of four columns on.
__device__ inline int neighbours_at_once(cuda::Rows<const float> matrix) {
  const auto begins = reinterpret_cast<std::uintptr_t>(matrix.data);
  if (begins % 16 == 0 && matrix.stride % 4 == 0) return 4;
  return begins % 8 == 0 && matrix.stride % 2 == 0 ? 2 : 1;
}

/// Four neighbours of a row, as many of them as there are; the others are 0.
__device__ inline void load_neighbours(const float* source, std::int64_t count, int at_once,
                                       float (&values)[4]) {
  if (at_once == 4 && count >= 4) {
    const float4 all = *reinterpret_cast<const float4*>(source);
    values[0] = all.x, values[1] = all.y, values[2] = all.z, values[3] = all.w;
  } else if (at_once >= 2 && count >= 4) {
    const float2 low = reinterpret_cast<const float2*>(source)[0];
    const float2 high = reinterpret_cast<const float2*>(source)[1];
    values[0] = low.x, values[1] = low.y, values[2] = high.x, values[3] = high.y;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = i < count ? source[i] : 0.0f;
  }
}

}  // namespace tessera::ops
