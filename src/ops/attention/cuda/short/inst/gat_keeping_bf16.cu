// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gat_keeping.cuh"
#include "ops/attention/cuda/short/gat_keeping.hpp"
#include "ops/attention/cuda/short/gat_kept_states.cuh"

namespace tessera::ops {
namespace {

using Run = ShortGatKeeping<kept_head_width>;
constexpr auto kernel = attend_short_gat_keeping<kept_head_width>;

void attend(const KeepingLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.num_workers), static_cast<unsigned>(launch.heads));
  cuda::launch_overlapped(kernel, grid, 32, std::size_t{Run::shared_bytes}, stream, launch);
}

int resident_blocks() {
  return cuda::resident_blocks(kernel, 32, Run::shared_bytes, Run::shared_bytes);
}

void find_states(const KeepingLaunch& launch, Stream stream) {
  const std::int64_t lanes = 8 * (std::int64_t{launch.num_rows} * launch.heads);
  cuda::launch_overlapped(find_kept_states, dim3(cuda::num_blocks(lanes, 256)), 256, stream,
                          launch);
}

}  // namespace

const KeepingFunctions short_gat_keeping_bf16 = {attend, resident_blocks, find_states};

void forget_kept(float* numbers, std::int64_t count, Stream stream) {
  cuda_check(cudaMemsetAsync(numbers, 0xff, static_cast<std::size_t>(count) * sizeof(float),
                             cuda::raw(stream)),
             "forgetting what was kept");
}

}  // namespace tessera::ops
