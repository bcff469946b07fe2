// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/rows/backward.cuh"

namespace tessera::ops {

const RowsAttentionBackward gatv2_backward_fp32 = make_rows_backward<float, AttentionForm::gatv2>();

}  // namespace tessera::ops
