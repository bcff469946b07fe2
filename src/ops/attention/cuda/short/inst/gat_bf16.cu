// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gat.cuh"

namespace tessera::ops {

const FunctionsOf<short_head_widths> short_gat_bf16 = windows_functions<short_head_widths>(
    [](auto width) { return windows_function<ShortGat<__nv_bfloat16, width>>; });

}  // namespace tessera::ops
