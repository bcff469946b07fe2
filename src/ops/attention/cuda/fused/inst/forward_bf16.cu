// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/fused/forward.cuh"

namespace tessera::ops {

const AttentionForwardFunctions attention_forward_bf16 = make_attention_forward<__nv_bfloat16>();

}  // namespace tessera::ops
