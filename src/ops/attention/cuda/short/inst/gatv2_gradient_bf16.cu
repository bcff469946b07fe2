// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gatv2_gradient.cuh"

namespace tessera::ops {

const SweepsOf<short_gatv2_gradient_widths> short_gatv2_gradient_bf16 =
    windows_functions<short_gatv2_gradient_widths>([](auto width) {
      return windows_sweeps<ShortGatV2Gradient<__nv_bfloat16, width, true>,
                            ShortGatV2Gradient<__nv_bfloat16, width, false>>;
    });

}  // namespace tessera::ops
