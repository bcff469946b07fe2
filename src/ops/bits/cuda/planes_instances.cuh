// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/planes.cuh"

namespace tessera::ops {

template <class Policy>
constexpr BitFunction planes_function() {
  return {Policy::rows,
          Policy::width,
          chunk_words,
          true,
          [](const BitProduct&) {
            allow_shared(multiply_planes_kernel<Policy>, planes_shared_bytes<Policy>);
          },
          [](const BitProduct& product, int split, Stream stream) {
            launch_in_clusters(multiply_planes_kernel<Policy>,
                               bit_grid(product, Policy::rows, Policy::width, split),
                               Policy::groups * 128, planes_shared_bytes<Policy>, split, stream,
                               product);
          }};
}

}  // namespace tessera::ops
