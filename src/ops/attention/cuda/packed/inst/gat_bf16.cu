// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/packed/kernel.cuh"

namespace tessera::ops {

const PackedFunctions packed_gat_bf16 =
    make_packed_attention(std::make_index_sequence<num_packed_widths>{});

}  // namespace tessera::ops
