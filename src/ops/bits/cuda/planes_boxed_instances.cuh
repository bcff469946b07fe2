// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/plane_maps.hpp"
#include "ops/bits/cuda/planes_boxed.cuh"

namespace tessera::ops {

template <class Policy>
constexpr BitFunction boxed_planes_function() {
  return {Policy::rows,
          Policy::width,
          chunk_words,
          false,
          [](const BitProduct&) {
            allow_shared(multiply_boxed_planes<Policy>, planes_shared_bytes<Policy>);
          },
          [](const BitProduct& product, int, Stream stream) {
            const PlaneMaps maps{plane_map(product.a, Policy::rows),
                                 plane_map(product.b, Policy::width)};
            cuda::launch_overlapped(
                multiply_boxed_planes<Policy>, bit_grid(product, Policy::rows, Policy::width, 1),
                BoxedPlanes<Policy>::threads, std::size_t{planes_shared_bytes<Policy>}, stream,
                product, maps);
          }};
}

}  // namespace tessera::ops
