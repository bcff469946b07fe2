// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_instance.cuh"

namespace tessera::ops {

template void run_stream_rows<32, false, float>(const ProductOf<float>&,
                                                const ProductLaunchOf<float>&, Stream);
template void run_stream_rows<32, true, float>(const ProductOf<float>&,
                                               const ProductLaunchOf<float>&, Stream);

}  // namespace tessera::ops
