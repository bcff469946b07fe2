// SPDX-License-Identifier: Apache-2.0
// Also for: fp32
#include "ops/attention/cuda/tall/dot_gradient.cuh"

namespace tessera::ops {

const SweepsOf<dot_widths<sizeof(__nv_bfloat16)>()> tall_dot_gradient_bf16 =
    windows_functions<dot_widths<sizeof(__nv_bfloat16)>()>([](auto width) {
      return windows_sweeps<DotGradient<__nv_bfloat16, width, true>,
                            DotGradient<__nv_bfloat16, width, false>>;
    });

}  // namespace tessera::ops
