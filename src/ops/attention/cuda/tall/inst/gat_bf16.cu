// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/gat_factors.cuh"
#include "ops/attention/cuda/tall/kernel.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_gat_bf16 = {
    make_tall_function<AttentionForm::gat, __nv_bfloat16, 8>(),
    make_tall_function<AttentionForm::gat, __nv_bfloat16, 16>(),
    make_factored_gat<__nv_bfloat16, 32, 5>(),
    make_factored_gat<__nv_bfloat16, 64, 4>(),
    make_factored_gat<__nv_bfloat16, 128, 3>(),
};

}  // namespace tessera::ops
