// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/inner_instance.cuh"

namespace tessera::ops {

template void run_stream_inner<1, false, float>(dim3, const ProductLaunchOf<float>&, Stream);
template void run_stream_inner<1, true, float>(dim3, const ProductLaunchOf<float>&, Stream);
template void run_stream_inner<2, false, float>(dim3, const ProductLaunchOf<float>&, Stream);
template void run_stream_inner<2, true, float>(dim3, const ProductLaunchOf<float>&, Stream);

}  // namespace tessera::ops
