// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/attention/kernel.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/attention/cuda/kernels.hpp"
#endif

namespace tessera::ops {

std::span<const AttentionKernel> attention_kernels() {
  static const std::vector<AttentionKernel> table = [] {
    std::vector<AttentionKernel> kernels = {cpu_attention_kernel()};
#ifdef TESSERA_WITH_CUDA
    append_cuda_rows_attention(kernels);
    append_cuda_tall_attention(kernels);
    append_cuda_short_attention(kernels);
    append_cuda_pairs_attention(kernels);
#endif
    const auto in_stages = staged_attention_kernels();
    kernels.insert(kernels.end(), in_stages.begin(), in_stages.end());
    return kernels;
  }();
  return table;
}

double attention_weight_error(const std::string& kernel, const AttentionOptions& options) {
  if (kernel != "attention/cuda/tall") return 0;
  const bool packed = options.form == AttentionForm::gat && options.precision == Precision::bf16 &&
                      options.features <= 16 * options.heads;
  // Three roundings to the eleven digits of fp16, or two bf16 numbers for each factor of a score,
  // and for the weight.
  return packed ? 3 * 0x1p-11 : 0x1p-16;
}

}  // namespace tessera::ops
