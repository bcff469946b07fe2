// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/backward.cuh"

namespace tessera::ops {

const RowsAttentionBackward gatv2_backward_bf16 =
    make_rows_backward<__nv_bfloat16, AttentionForm::gatv2>();

}  // namespace tessera::ops
