// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/kernel.cuh"

namespace tessera::ops {

const TallAttentionFunctions packed_gat_bf16 =
    make_packed_attention(std::make_index_sequence<tall_head_widths.size()>{});

}  // namespace tessera::ops
