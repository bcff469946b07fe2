// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/inner_instance.cuh"

namespace tessera::ops {

template void run_stream_inner<0, false>(const ProductLaunch&, Stream);
template void run_stream_inner<16, false>(const ProductLaunch&, Stream);
template void run_stream_inner<32, false>(const ProductLaunch&, Stream);
template void run_stream_inner<0, true>(const ProductLaunch&, Stream);

}  // namespace tessera::ops
