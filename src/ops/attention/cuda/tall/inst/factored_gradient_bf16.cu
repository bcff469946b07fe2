// SPDX-License-Identifier: Apache-2.0
// Also for: fp32
#include "ops/attention/cuda/tall/factored_gradient.cuh"

namespace tessera::ops {

const SweepsOf<wide_head_widths> factored_gradient_bf16 =
    windows_functions<wide_head_widths>([](auto width) {
      return windows_sweeps<FactoredGradient<__nv_bfloat16, width, true>,
                            FactoredGradient<__nv_bfloat16, width, false>>;
    });

}  // namespace tessera::ops
