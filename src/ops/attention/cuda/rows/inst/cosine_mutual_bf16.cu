// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/attention/cuda/rows/mutual.cuh"

namespace tessera::ops {

template struct MutualKernels<Precision::bf16>;

}  // namespace tessera::ops
