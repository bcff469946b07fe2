// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/backward.cuh"

namespace tessera::ops {

const RowsAttentionBackward cosine_backward_bf16 =
    make_rows_backward<__nv_bfloat16, AttentionForm::cosine>();

}  // namespace tessera::ops
