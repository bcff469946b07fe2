// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm/cuda/stream_inner_narrow.cuh"

namespace tessera::ops {

template <int more>
void run_stream_inner_narrow(const NarrowLaunch& launch, bool wide, Stream stream) {
  launch_splits(wide ? stream_inner_narrow<more, true> : stream_inner_narrow<more, false>,
                inner_threads, stream_inner_narrow_bytes<more>(), launch, stream);
}

template void run_stream_inner_narrow<0>(const NarrowLaunch&, bool, Stream);
template void run_stream_inner_narrow<16>(const NarrowLaunch&, bool, Stream);
template void run_stream_inner_narrow<32>(const NarrowLaunch&, bool, Stream);

}  // namespace tessera::ops
