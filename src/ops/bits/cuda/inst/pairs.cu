// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/pairs.cuh"

namespace tessera::ops {

namespace {

template <bool finishes, bool bytes>
void launch(const BitProduct& product, const BitResult& result, Stream stream) {
  cuda::launch_overlapped(
      multiply_pairs_kernel<finishes, bytes>, bit_grid(product, pairs_rows, pairs_rows, 1),
      pairs_threads,
      static_cast<std::size_t>(pairs_shared_bytes(product.a.planes, product.b.planes)), stream,
      product, result);
}

template <bool bytes>
constexpr BitFunction pairs_of() {
  return {pairs_rows,
          pairs_rows,
          0,
          false,
          [](const BitProduct&) {
            // The same for all plans: each sets it for all others.
            allow_shared(multiply_pairs_kernel<false, bytes>, pairs_most_bytes);
            allow_shared(multiply_pairs_kernel<true, bytes>, pairs_most_bytes);
          },
          [](const BitProduct& product, int, Stream stream) {
            launch<false, bytes>(product, BitResult(), stream);
          },
          launch<true, bytes>};
}

}  // namespace

const BitFunction pairs_function = pairs_of<false>();
const BitFunction byte_pairs_function = pairs_of<true>();

}  // namespace tessera::ops
