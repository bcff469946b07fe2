// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::cuda {

/// Sums of several values over `lanes` neighbouring lanes of a warp: each lane ends up with that of
/// one value, number lane / (lanes / count). Both are powers of two, and all lanes of the warp must
/// call. Every exchange halves the values that a lane is concerned with.
template <int lanes, int count>
__device__ float spread_sum(float (&values)[count], int lane) {
  static_assert(count <= lanes && lanes <= 32);
  int bit = lanes / 2;
#pragma unroll
  for (int half = count / 2; half > 0; half /= 2, bit /= 2) {
    const bool upper = (lane & bit) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float sent = upper ? values[i] : values[half + i];
      const float kept = upper ? values[half + i] : values[i];
      values[i] = kept + __shfl_xor_sync(~0u, sent, bit);
    }
  }
#pragma unroll
  for (; bit > 0; bit /= 2) values[0] += __shfl_xor_sync(~0u, values[0], bit);
  return values[0];
}

}  // namespace tessera::cuda
