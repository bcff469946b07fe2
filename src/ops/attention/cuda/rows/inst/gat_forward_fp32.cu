// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/forward.cuh"

namespace tessera::ops {

const RowsAttentionForward gat_forward_fp32 = make_rows_forward<float, AttentionForm::gat>();

}  // namespace tessera::ops
