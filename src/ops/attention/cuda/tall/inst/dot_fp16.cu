// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/kernel.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_dot_fp16 = make_tall_attention<AttentionForm::dot, __half>();

}  // namespace tessera::ops
