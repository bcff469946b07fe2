// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cluster.cuh"
#include "cuda/shared_memory.cuh"
#include "ops/bits/cuda/launch.hpp"

/// From a policy to the functions that a plan calls.
namespace tessera::ops {

inline dim3 bit_grid(const BitProduct& product, int rows, int width, int split) {
  return dim3(cuda::num_blocks(product.a.rows, rows) * static_cast<unsigned>(split),
              cuda::num_blocks(product.b.rows, width));
}

/// A kernel of two blocks that may share K, as a cluster.
template <class Policy, auto kernel, int part_words, int bytes>
constexpr BitFunction clustered_function() {
  return {Policy::rows,
          Policy::width,
          part_words,
          true,
          [](const BitProduct&) { cuda::allow_shared(kernel, bytes); },
          [](const BitProduct& product, int split, Stream stream) {
            cuda::launch_clusters(kernel, bit_grid(product, Policy::rows, Policy::width, split),
                                  static_cast<unsigned>(split), Policy::groups * 128,
                                  std::size_t{bytes}, stream, product);
          }};
}

}  // namespace tessera::ops
