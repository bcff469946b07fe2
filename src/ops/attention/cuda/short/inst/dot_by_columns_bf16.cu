// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/short/gradient.cuh"

namespace tessera::ops {

const ShortAttentionFunctions short_dot_by_columns_bf16 =
    make_short_gradients<__nv_bfloat16, false>();

}  // namespace tessera::ops
