// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/inner_instance.cuh"

namespace tessera::ops {

template void run_stream_inner<1, false>(dim3, const ProductLaunch&, Stream);
template void run_stream_inner<1, true>(dim3, const ProductLaunch&, Stream);
template void run_stream_inner<2, false>(dim3, const ProductLaunch&, Stream);
template void run_stream_inner<2, true>(dim3, const ProductLaunch&, Stream);

}  // namespace tessera::ops
