// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/backward.cuh"

namespace tessera::ops {

const RowsAttentionBackward cosine_backward_fp32 =
    make_rows_backward<float, AttentionForm::cosine>();

}  // namespace tessera::ops
