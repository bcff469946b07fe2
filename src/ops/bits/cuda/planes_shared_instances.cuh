// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/plane_maps.hpp"
#include "ops/bits/cuda/planes_shared.cuh"

namespace tessera::ops {

/// Blocks that share B. All GPUs with clusters have pairs of processors.
inline constexpr int sharing_blocks = 2;

template <class Policy>
constexpr BitFunction shared_planes_function() {
  return {Policy::rows,
          Policy::width,
          chunk_words,
          false,
          [](const BitProduct&) {
            allow_shared(multiply_shared_planes<Policy>, planes_shared_bytes<Policy>);
          },
          [](const BitProduct& product, int, Stream stream) {
            const int cluster = product.index.offsets == nullptr ? sharing_blocks : 1;
            dim3 grid = bit_grid(product, Policy::rows, Policy::width, 1);
            const auto of_cluster = static_cast<unsigned>(cluster);
            grid.x = (grid.x + of_cluster - 1) / of_cluster * of_cluster;
            const PlaneMaps maps{plane_map(product.a, Policy::rows),
                                 plane_map(product.b, Policy::width / cluster)};
            launch_in_clusters(multiply_shared_planes<Policy>, grid, SharedPlanes<Policy>::threads,
                               planes_shared_bytes<Policy>, cluster, stream, product, maps);
          }};
}

}  // namespace tessera::ops
