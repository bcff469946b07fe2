// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gat.cuh"

namespace tessera::ops {

const ShortAttentionFunctions short_gat_bf16 = make_short_gats<__nv_bfloat16>();

}  // namespace tessera::ops
