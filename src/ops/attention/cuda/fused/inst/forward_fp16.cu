// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/fused/forward.cuh"

namespace tessera::ops {

const AttentionForwardFunctions attention_forward_fp16 = make_attention_forward<__half>();

}  // namespace tessera::ops
