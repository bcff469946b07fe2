// SPDX-License-Identifier: Apache-2.0
// Also for: fp32
#include "ops/gemm/cuda/product_instance.cuh"

namespace tessera::ops {

template void run_both<16, 16>(unsigned, unsigned, const ProductLaunchOf<__nv_bfloat16>&,
                               const ProductLaunchOf<__nv_bfloat16>&, Stream);
template void run_both<16, 64>(unsigned, unsigned, const ProductLaunchOf<__nv_bfloat16>&,
                               const ProductLaunchOf<__nv_bfloat16>&, Stream);
template void run_both<64, 16>(unsigned, unsigned, const ProductLaunchOf<__nv_bfloat16>&,
                               const ProductLaunchOf<__nv_bfloat16>&, Stream);
template void run_both<64, 64>(unsigned, unsigned, const ProductLaunchOf<__nv_bfloat16>&,
                               const ProductLaunchOf<__nv_bfloat16>&, Stream);

}  // namespace tessera::ops
