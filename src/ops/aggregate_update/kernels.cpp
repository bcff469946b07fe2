// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/kernel.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/aggregate_update/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const AggregateUpdateKernel> aggregate_update_kernels() {
  static const std::vector<AggregateUpdateKernel> table = [] {
    std::vector<AggregateUpdateKernel> kernels = {staged_aggregate_update(DeviceKind::cpu)};
#ifdef TESSERA_WITH_CUDA
    kernels.push_back(staged_aggregate_update(DeviceKind::cuda));
    append_cuda_fused_aggregate_update(kernels);
    append_cuda_window_aggregate_update(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
