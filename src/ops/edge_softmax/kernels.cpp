// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/edge_softmax/kernel.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/edge_softmax/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const EdgeSoftmaxKernel> edge_softmax_kernels() {
  static const std::vector<EdgeSoftmaxKernel> table = [] {
    std::vector<EdgeSoftmaxKernel> kernels(cpu_edge_softmax_kernels().begin(),
                                           cpu_edge_softmax_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_edge_softmax_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
