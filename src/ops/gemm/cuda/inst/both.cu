// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/product.cuh"

namespace tessera::ops {

template <int first_cols, int second_cols>
void run_both(unsigned first_blocks, unsigned second_blocks, const ProductLaunch& first,
              const ProductLaunch& second, Stream stream) {
  cuda::launch_overlapped(multiply_both<first_cols, second_cols>,
                          dim3(first_blocks + second_blocks), product_threads, stream, first_blocks,
                          first, second);
}

template void run_both<16, 16>(unsigned, unsigned, const ProductLaunch&, const ProductLaunch&,
                               Stream);
template void run_both<16, 64>(unsigned, unsigned, const ProductLaunch&, const ProductLaunch&,
                               Stream);
template void run_both<64, 16>(unsigned, unsigned, const ProductLaunch&, const ProductLaunch&,
                               Stream);
template void run_both<64, 64>(unsigned, unsigned, const ProductLaunch&, const ProductLaunch&,
                               Stream);

}  // namespace tessera::ops
