// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_instance.cuh"

namespace tessera::ops {

template void run_stream_rows<32>(const Product&, const ProductLaunch&, Stream);

}  // namespace tessera::ops
