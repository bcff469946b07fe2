// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/kernel.cuh"

namespace tessera::ops {

const HeadAttentionFunctions heads_gat_bf16 = make_head_attention<__nv_bfloat16>();

}  // namespace tessera::ops
