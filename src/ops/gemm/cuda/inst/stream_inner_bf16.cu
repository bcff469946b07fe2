// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/inner_instance.cuh"

namespace tessera::ops {

template void run_stream_inner<1, false, __nv_bfloat16>(dim3, const ProductLaunchOf<__nv_bfloat16>&,
                                                        Stream);
template void run_stream_inner<1, true, __nv_bfloat16>(dim3, const ProductLaunchOf<__nv_bfloat16>&,
                                                       Stream);
template void run_stream_inner<2, false, __nv_bfloat16>(dim3, const ProductLaunchOf<__nv_bfloat16>&,
                                                        Stream);
template void run_stream_inner<2, true, __nv_bfloat16>(dim3, const ProductLaunchOf<__nv_bfloat16>&,
                                                       Stream);

}  // namespace tessera::ops
