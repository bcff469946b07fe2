// SPDX-License-Identifier: Apache-2.0
// Also for: fp16
#include "ops/attention/cuda/short/gatv2.cuh"

namespace tessera::ops {

const FunctionsOf<short_gatv2_widths> short_gatv2_bf16 = windows_functions<short_gatv2_widths>(
    [](auto width) { return windows_function<ShortGatV2<__nv_bfloat16, width>>; });

}  // namespace tessera::ops
