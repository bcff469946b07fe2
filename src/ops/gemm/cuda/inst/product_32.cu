// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/product_instance.cuh"

namespace tessera::ops {

template void run_small_tiles<32>(const ProductOf<float>&, dim3, const ProductLaunchOf<float>&,
                                  Stream);

}  // namespace tessera::ops
