// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/forward.cuh"

namespace tessera::ops {

const RowsAttentionForward cosine_forward_fp16 = make_rows_forward<__half, AttentionForm::cosine>();

}  // namespace tessera::ops
