// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::ops {

/// Adds up what the lanes of a group hold of each of its edges. Every step halves the number of
/// sums that a lane keeps and sends it the other half of its partner's; lane * edges / lanes is
/// whose sum it ends with.
template <int lanes, int edges>
__device__ float group_sum(float (&sums)[edges], int lane) {
  int kept = edges;
#pragma unroll
  for (int distance = lanes / 2; distance >= 1; distance /= 2) {
    if (kept > 1) {
      kept /= 2;
      const bool upper = (lane & distance) != 0;
#pragma unroll
      for (int i = 0; i < edges / 2; ++i) {
        if (i >= kept) continue;
        const float sent = upper ? sums[i] : sums[i + kept];
        const float own = upper ? sums[i + kept] : sums[i];
        sums[i] = own + __shfl_xor_sync(~0u, sent, distance);
      }
    } else {
      sums[0] += __shfl_xor_sync(~0u, sums[0], distance);
    }
  }
  return sums[0];
}

}  // namespace tessera::ops
