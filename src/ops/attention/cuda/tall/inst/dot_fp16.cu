// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_groups.cuh"
#include "ops/attention/cuda/tall/kernel.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_dot_fp16 = {
    make_tall_function<AttentionForm::dot, __half, 8>(),
    make_tall_function<AttentionForm::dot, __half, 16>(),
    make_tall_function<AttentionForm::dot, __half, 32>(),
    make_dot_groups<__half, 64>(),
    make_dot_groups<__half, 128>(),
};

}  // namespace tessera::ops
