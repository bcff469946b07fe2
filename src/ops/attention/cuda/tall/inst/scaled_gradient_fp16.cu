// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/scaled_gradient.cuh"

namespace tessera::ops {

const SweepsOf<narrow_head_widths> scaled_gradient_fp16 =
    windows_functions<narrow_head_widths>([](auto width) {
      return windows_sweeps<ScaledGradient<__half, width, true>,
                            ScaledGradient<__half, width, false>>;
    });

}  // namespace tessera::ops
