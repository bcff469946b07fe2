// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/forward.cuh"

namespace tessera::ops {

const RowsAttentionForward dot_forward_fp16 = make_rows_forward<__half, AttentionForm::dot>();

}  // namespace tessera::ops
