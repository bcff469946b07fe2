// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rectified/kernel.cuh"

namespace tessera::ops {

const RectifiedFunctions rectified_gatv2_fp16 =
    make_rectified<__half>(std::make_index_sequence<rectified_widths.size()>{});

}  // namespace tessera::ops
