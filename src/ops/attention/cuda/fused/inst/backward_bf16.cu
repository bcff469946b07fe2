// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/fused/backward.cuh"

namespace tessera::ops {

const AttentionBackwardFunctions attention_backward_bf16 = make_attention_backward<__nv_bfloat16>();

}  // namespace tessera::ops
