// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/tall/dot_gradient.cuh"

namespace tessera::ops {

const TallAttentionFunctions tall_dot_by_rows_bf16 =
    make_dot_gradients<__nv_bfloat16, true, tall_head_widths.size()>();

}  // namespace tessera::ops
