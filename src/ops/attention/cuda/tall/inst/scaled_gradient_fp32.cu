// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/scaled_gradient.cuh"

namespace tessera::ops {

const SweepsOf<narrow_head_widths> scaled_gradient_fp32 =
    windows_functions<narrow_head_widths>([](auto width) {
      return windows_sweeps<ScaledGradient<float, width, true>,
                            ScaledGradient<float, width, false>>;
    });

}  // namespace tessera::ops
