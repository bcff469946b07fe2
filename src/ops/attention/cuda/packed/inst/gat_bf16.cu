// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/kernel.cuh"

namespace tessera::ops {

const std::array<TallAttentionFunction, num_packed_widths> packed_gat_bf16 = {
    packed_function<tall_head_widths[0]>(), packed_function<tall_head_widths[1]>()};

}  // namespace tessera::ops
