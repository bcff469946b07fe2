// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/kernel.cuh"

namespace tessera::ops {

const HeadAttentionFunctions heads_gat_fp32 = make_head_attention<float>();

}  // namespace tessera::ops
