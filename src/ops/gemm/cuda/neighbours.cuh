// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "cuda/elements.cuh"

namespace tessera::ops {

/// How many neighbours of a row one instruction may load, from any multiple of four columns on.
template <class T>
__device__ inline int neighbours_at_once(cuda::Rows<const T> matrix) {
  const auto begins = reinterpret_cast<std::uintptr_t>(matrix.data);
  if (begins % (4 * sizeof(T)) == 0 && matrix.stride % 4 == 0) return 4;
  return begins % (2 * sizeof(T)) == 0 && matrix.stride % 2 == 0 ? 2 : 1;
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

/// The same of bf16, as they are.
__device__ inline void load_neighbours(const __nv_bfloat16* source, std::int64_t count, int at_once,
                                       __nv_bfloat16 (&values)[4]) {
  auto& pairs = reinterpret_cast<std::uint32_t(&)[2]>(values);
  if (at_once == 4 && count >= 4) {
    const uint2 all = *reinterpret_cast<const uint2*>(source);
    pairs[0] = all.x, pairs[1] = all.y;
  } else if (at_once >= 2 && count >= 4) {
    pairs[0] = reinterpret_cast<const std::uint32_t*>(source)[0];
    pairs[1] = reinterpret_cast<const std::uint32_t*>(source)[1];
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = i < count ? source[i] : __nv_bfloat16(0.0f);
  }
}

}  // namespace tessera::ops
