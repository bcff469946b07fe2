// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/factored_gat.cuh"

namespace tessera::ops {

const FunctionsOf<wide_head_widths> factored_gat_bf16 = windows_functions<wide_head_widths>(
    [](auto width) { return windows_function<FactoredGat<__nv_bfloat16, width>>; });

}  // namespace tessera::ops
