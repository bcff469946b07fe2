// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/pairs.cuh"

namespace tessera::ops {

const BitFunction pairs_function = {
    pairs_rows,
    pairs_rows,
    0,
    false,
    [](const BitProduct& product) {
      allow_shared(multiply_pairs_kernel, pairs_shared_bytes(product.a.planes, product.b.planes));
    },
    [](const BitProduct& product, int, Stream stream) {
      cuda::launch_overlapped(
          multiply_pairs_kernel, bit_grid(product, pairs_rows, pairs_rows, 1), pairs_threads,
          static_cast<std::size_t>(pairs_shared_bytes(product.a.planes, product.b.planes)), stream,
          product);
    }};

}  // namespace tessera::ops
