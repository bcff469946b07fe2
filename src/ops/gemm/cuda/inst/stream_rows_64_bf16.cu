// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_instance.cuh"

namespace tessera::ops {

template void run_stream_rows<64, false, __nv_bfloat16>(const ProductOf<__nv_bfloat16>&,
                                                        const ProductLaunchOf<__nv_bfloat16>&,
                                                        Stream);
template void run_stream_rows<64, true, __nv_bfloat16>(const ProductOf<__nv_bfloat16>&,
                                                       const ProductLaunchOf<__nv_bfloat16>&,
                                                       Stream);

}  // namespace tessera::ops
