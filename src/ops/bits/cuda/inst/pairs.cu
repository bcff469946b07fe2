// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/pairs.cuh"

namespace tessera::ops {

namespace {

template <bool finishes>
void launch(const BitProduct& product, const BitResult& result, Stream stream) {
  cuda::launch_overlapped(
      multiply_pairs_kernel<finishes>, bit_grid(product, pairs_rows, pairs_rows, 1), pairs_threads,
      static_cast<std::size_t>(pairs_shared_bytes(product.a.planes, product.b.planes)), stream,
      product, result);
}

}  // namespace

const BitFunction pairs_function = {pairs_rows,
                                    pairs_rows,
                                    0,
                                    false,
                                    [](const BitProduct&) {
                                      // The same for all plans: each sets it for all others.
                                      allow_shared(multiply_pairs_kernel<false>, pairs_most_bytes);
                                      allow_shared(multiply_pairs_kernel<true>, pairs_most_bytes);
                                    },
                                    [](const BitProduct& product, int, Stream stream) {
                                      launch<false>(product, BitResult(), stream);
                                    },
                                    launch<true>};

}  // namespace tessera::ops
