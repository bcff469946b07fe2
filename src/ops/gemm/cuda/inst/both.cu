// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/product_instance.cuh"

namespace tessera::ops {

template void run_both<16, 16>(unsigned, unsigned, const ProductLaunchOf<float>&,
                               const ProductLaunchOf<float>&, Stream);
template void run_both<16, 64>(unsigned, unsigned, const ProductLaunchOf<float>&,
                               const ProductLaunchOf<float>&, Stream);
template void run_both<64, 16>(unsigned, unsigned, const ProductLaunchOf<float>&,
                               const ProductLaunchOf<float>&, Stream);
template void run_both<64, 64>(unsigned, unsigned, const ProductLaunchOf<float>&,
                               const ProductLaunchOf<float>&, Stream);

}  // namespace tessera::ops
