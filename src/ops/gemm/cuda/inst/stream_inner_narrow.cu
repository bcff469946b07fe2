// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/gemm/cuda/stream_inner_narrow.cuh"

namespace tessera::ops {

template <int more>
void run_stream_inner_narrow(const NarrowLaunch& launch, bool wide, Stream stream) {
  constexpr int bytes = stream_inner_narrow_bytes<more>();
  const auto kernel = wide ? stream_inner_narrow<more, true> : stream_inner_narrow<more, false>;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "asking for shared memory");
  cuda::launch_overlapped(kernel, dim3(static_cast<unsigned>(launch.split.splits)), inner_threads,
                          static_cast<std::size_t>(bytes), stream, launch);
}

template void run_stream_inner_narrow<0>(const NarrowLaunch&, bool, Stream);
template void run_stream_inner_narrow<16>(const NarrowLaunch&, bool, Stream);
template void run_stream_inner_narrow<32>(const NarrowLaunch&, bool, Stream);

}  // namespace tessera::ops
