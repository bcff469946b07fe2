// SPDX-License-Identifier: Apache-2.0
// Also for: fp32
#include "ops/gemm/cuda/product_instance.cuh"

namespace tessera::ops {

template void run_small_tiles<16>(const ProductOf<__nv_bfloat16>&, dim3, Stream);
template void run_small_tiles<32>(const ProductOf<__nv_bfloat16>&, dim3, Stream);
template void run_small_tiles<64>(const ProductOf<__nv_bfloat16>&, dim3, Stream);

}  // namespace tessera::ops
