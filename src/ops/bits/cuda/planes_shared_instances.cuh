// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/plane_maps.hpp"
#include "ops/bits/cuda/planes_shared.cuh"

namespace tessera::ops {

/// Blocks that four of them share B in, of those that a GPU holds at once. The same for all GPUs of
/// a machine that have wgmma.
template <class Policy>
unsigned blocks_in_fours() {
  static const unsigned count = [] {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {4, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(4);
    config.blockDim = dim3(SharedPlanes<Policy>::threads);
    config.dynamicSmemBytes = planes_shared_bytes<Policy>;
    config.attrs = &cluster;
    config.numAttrs = 1;
    int clusters = 0;
    cuda_check(cudaOccupancyMaxActiveClusters(&clusters, multiply_shared_planes<Policy>, &config),
               "asking for room for clusters");
    return static_cast<unsigned>(clusters) * 4;
  }();
  return count;
}

/// Blocks that share B: four where that keeps no processor from work, else two, which all GPUs with
/// clusters have room for. One where tiles are skipped.
template <class Policy>
int sharing_blocks(const BitProduct& product, dim3 grid) {
  if (product.index.offsets != nullptr) return 1;
  return grid.x % 4 == 0 && grid.x * grid.y <= blocks_in_fours<Policy>() ? 4 : 2;
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
            const int cluster = sharing_blocks<Policy>(product, grid);
            const auto of_cluster = static_cast<unsigned>(cluster);
            grid.x = (grid.x + of_cluster - 1) / of_cluster * of_cluster;
            const PlaneMaps maps{plane_map(product.a, Policy::rows),
                                 plane_map(product.b, Policy::width / cluster)};
            launch_in_clusters(multiply_shared_planes<Policy>, grid, SharedPlanes<Policy>::threads,
                               planes_shared_bytes<Policy>, cluster, stream, product, maps);
          }};
}

}  // namespace tessera::ops
