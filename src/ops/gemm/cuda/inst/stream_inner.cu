// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/inner_instance.cuh"

namespace tessera::ops {

template void run_stream_inner<4, false>(const ProductLaunch&, Stream);
template void run_stream_inner<5, false>(const ProductLaunch&, Stream);
template void run_stream_inner<6, false>(const ProductLaunch&, Stream);
template void run_stream_inner<4, true>(const ProductLaunch&, Stream);
template void run_stream_inner<5, true>(const ProductLaunch&, Stream);
template void run_stream_inner<6, true>(const ProductLaunch&, Stream);

}  // namespace tessera::ops
