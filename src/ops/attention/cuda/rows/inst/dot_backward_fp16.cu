// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/backward.cuh"

namespace tessera::ops {

const RowsAttentionBackward dot_backward_fp16 = make_rows_backward<__half, AttentionForm::dot>();

}  // namespace tessera::ops
