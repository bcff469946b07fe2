// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/attention/kernel.hpp"
#include "ops/attention/terms.hpp"
#include "ops/attention/weight_error.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/attention/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const AttentionKernel> attention_kernels() {
  static const std::vector<AttentionKernel> table = [] {
    std::vector<AttentionKernel> kernels(cpu_attention_kernels().begin(),
                                         cpu_attention_kernels().end());
#ifdef TESSERA_WITH_CUDA
    append_cuda_rows_attention(kernels);
    append_cuda_tall_attention(kernels);
    append_cuda_short_attention(kernels);
    append_cuda_pairs_attention(kernels);
    append_cuda_packed_attention(kernels);
    append_cuda_heads_attention(kernels);
    append_cuda_fused_attention(kernels);
    append_cuda_staged_attention(kernels);
#endif
    const auto with_terms = attention_kernels_with_terms();
    kernels.insert(kernels.end(), with_terms.begin(), with_terms.end());
    return kernels;
  }();
  return table;
}

double attention_weight_error(const std::string& kernel) {
  // Three roundings to the eleven digits of fp16.
  if (kernel == "attention/cuda/packed") return 3 * 0x1p-11;
  // Two bf16 numbers for each factor of a score, and for the weight.
  if (kernel == "attention/cuda/tall") return 0x1p-16;
  return 0;
}

}  // namespace tessera::ops
