// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_inner.cuh"

namespace tessera::ops {

template <int more, bool fused>
void run_stream_inner(const ProductLaunch& launch, Stream stream) {
  launch_splits(stream_inner<more, fused>, inner_threads, stream_inner_bytes<more>(), launch,
                stream);
}

template void run_stream_inner<0, false>(const ProductLaunch&, Stream);
template void run_stream_inner<16, false>(const ProductLaunch&, Stream);
template void run_stream_inner<32, false>(const ProductLaunch&, Stream);
template void run_stream_inner<0, true>(const ProductLaunch&, Stream);

}  // namespace tessera::ops
