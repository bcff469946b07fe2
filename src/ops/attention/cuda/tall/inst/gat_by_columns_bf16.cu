// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/gat_gradient.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_gat_by_columns_bf16 = make_gat_gradients<__nv_bfloat16, false>();

}  // namespace tessera::ops
