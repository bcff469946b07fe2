// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/heads/kernel.cuh"

namespace tessera::ops {

const HeadAttentionFunctions heads_gat_fp16 = make_head_attention<__half>();

}  // namespace tessera::ops
