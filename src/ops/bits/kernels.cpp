// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/bits/kernel.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/bits/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const BitKernel> bit_gemm_kernels() {
  static const std::vector<BitKernel> table = [] {
    std::vector<BitKernel> kernels(cpu_bit_gemm_kernels().begin(), cpu_bit_gemm_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_bit_gemm_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

std::span<const BitKernel> bit_aggregate_kernels() {
  static const std::vector<BitKernel> table = [] {
    std::vector<BitKernel> kernels(cpu_bit_aggregate_kernels().begin(),
                                   cpu_bit_aggregate_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_byte_rows(kernels);
    append_cuda_wide_aggregate(kernels);
    append_cuda_byte_windows(kernels);
    append_cuda_byte_quads(kernels);
#endif
    return kernels;
  }();
  return table;
}

std::span<const BitKernel> bit_lists_kernels() {
  static const std::vector<BitKernel> table = [] {
    std::vector<BitKernel> kernels(cpu_bit_lists_kernels().begin(), cpu_bit_lists_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_byte_lists(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
