// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/sddmm/kernel.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/sddmm/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const SddmmKernel> sddmm_kernels() {
  static const std::vector<SddmmKernel> table = [] {
    std::vector<SddmmKernel> kernels(cpu_sddmm_kernels().begin(), cpu_sddmm_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_sddmm_kernels(kernels);
    append_cuda_panels_kernels(kernels);
    append_cuda_list_kernels(kernels);
    append_cuda_tall_dots_kernels(kernels);
    append_cuda_short_dots_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
