// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/packed_gat.cuh"

namespace tessera::ops {

const std::array<FunctionsOf<packed_block_features>, narrow_head_widths.size()> packed_gat_bf16 =
    windows_functions<narrow_head_widths>([](auto width) {
      return windows_functions<packed_block_features>(
          [width](auto features) { return windows_function<PackedGat<width, features>>; });
    });

}  // namespace tessera::ops
