// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/kernel.hpp"

#include <vector>

#ifdef TESSERA_WITH_CUDA
#include "ops/spmm/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const SpmmKernel> spmm_kernels() {
  static const std::vector<SpmmKernel> table = [] {
    std::vector<SpmmKernel> kernels(cpu_spmm_kernels().begin(), cpu_spmm_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_rows_kernels(kernels);
    append_cuda_ordered_rows_kernel(kernels);
    append_cusparse_kernels(kernels);
    append_cuda_heads_kernels(kernels);
    append_cuda_tall_kernels(kernels);
    append_cuda_short_kernels(kernels);
    append_cuda_hybrid_kernels(kernels);
    append_cuda_scatter_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
