// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/packed_gradient.cuh"

namespace tessera::ops {

const SweepsOf<narrow_head_widths> packed_gradient_bf16 =
    windows_functions<narrow_head_widths>([](auto width) {
      return windows_sweeps<PackedGradient<width, true>, PackedGradient<width, false>>;
    });

}  // namespace tessera::ops
