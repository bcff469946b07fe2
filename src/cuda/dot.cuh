// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::cuda {

/// Adds a . b, in double, so that squares neither overflow nor vanish.
template <int width>
__device__ void add_dot(double& sum, const float (&a)[width], const float (&b)[width]) {
#pragma unroll
  for (int i = 0; i < width; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
}

}  // namespace tessera::cuda
