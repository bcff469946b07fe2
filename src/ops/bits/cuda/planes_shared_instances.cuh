// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/plane_maps.hpp"
#include "ops/bits/cuda/planes_shared.cuh"

namespace tessera::ops {

/// Blocks that share B. One where tiles are skipped, and for a single plane, which takes less than
/// the blocks would wait for each other.
template <class Policy>
int sharing_blocks(const BitProduct& product) {
  return product.index.offsets != nullptr || Policy::order == PlanesOrder::one ? 1 : 2;
}

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
            dim3 grid = bit_grid(product, Policy::rows, Policy::width, 1);
            const int cluster = sharing_blocks<Policy>(product);
            const auto of_cluster = static_cast<unsigned>(cluster);
            grid.x = (grid.x + of_cluster - 1) / of_cluster * of_cluster;
            const PlaneMaps maps{plane_map(product.a, Policy::rows),
                                 plane_map(product.b, Policy::width / cluster)};
            launch_in_clusters(multiply_shared_planes<Policy>, grid, SharedPlanes<Policy>::threads,
                               planes_shared_bytes<Policy>, cluster, stream, product, maps);
          }};
}

}  // namespace tessera::ops
