// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_groups.cuh"
#include "ops/attention/cuda/tall/kernel.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_dot_bf16 = {
    make_tall_function<AttentionForm::dot, __nv_bfloat16, 8>(),
    make_tall_function<AttentionForm::dot, __nv_bfloat16, 16>(),
    make_tall_function<AttentionForm::dot, __nv_bfloat16, 32>(),
    make_dot_groups<__nv_bfloat16, 64>(),
    make_dot_groups<__nv_bfloat16, 128>(),
};

}  // namespace tessera::ops
