// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_instance.cuh"

namespace tessera::ops {

template void run_stream_rows<64, false>(const Product&, const ProductLaunch&, Stream);
template void run_stream_rows<64, true>(const Product&, const ProductLaunch&, Stream);

}  // namespace tessera::ops
