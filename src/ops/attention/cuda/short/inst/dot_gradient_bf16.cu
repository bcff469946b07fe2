// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gradient.cuh"

namespace tessera::ops {

const SweepsOf<short_head_widths> short_dot_gradient_bf16 =
    windows_functions<short_head_widths>([](auto width) {
      return windows_sweeps<ShortGradient<__nv_bfloat16, width, true>,
                            ShortGradient<__nv_bfloat16, width, false>>;
    });

}  // namespace tessera::ops
