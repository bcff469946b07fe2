// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/fused/forward.cuh"

namespace tessera::ops {

const AttentionForwardFunctions attention_forward_fp32 = make_attention_forward<float>();

}  // namespace tessera::ops
