// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/fused/backward.cuh"

namespace tessera::ops {

const AttentionBackwardFunctions attention_backward_fp32 = make_attention_backward<float>();

}  // namespace tessera::ops
