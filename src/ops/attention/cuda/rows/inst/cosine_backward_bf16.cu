// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/attention/cuda/rows/backward.cuh"

namespace tessera::ops {

template struct RowsBackwardKernels<RowsAttentionKey{Precision::bf16, AttentionForm::cosine}>;

}  // namespace tessera::ops
