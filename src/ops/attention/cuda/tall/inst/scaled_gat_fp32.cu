// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/scaled_gat.cuh"

namespace tessera::ops {

const FunctionsOf<tall_head_widths> scaled_gat_fp32 = windows_functions<tall_head_widths>(
    [](auto width) { return windows_function<ScaledGat<float, width>>; });

}  // namespace tessera::ops
