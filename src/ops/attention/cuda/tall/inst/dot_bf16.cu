// SPDX-License-Identifier: Apache-2.0
// Also for: fp16 fp32
#include "ops/attention/cuda/tall/dots.cuh"

namespace tessera::ops {

const FunctionsOf<dot_widths<sizeof(__nv_bfloat16)>()> tall_dot_bf16 =
    windows_functions<dot_widths<sizeof(__nv_bfloat16)>()>(
        [](auto width) { return windows_function<WindowDots<__nv_bfloat16, width>>; });

}  // namespace tessera::ops
