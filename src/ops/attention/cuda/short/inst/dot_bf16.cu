// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/attention/cuda/short/kernel.cuh"

namespace tessera::ops {

const FunctionsOf<short_head_widths> short_dot_bf16 = windows_functions<short_head_widths>(
    [](auto width) { return windows_function<ShortDot<__nv_bfloat16, width>>; });

}  // namespace tessera::ops
