// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/messages/cuda/rows/kernel.cuh"

namespace tessera::ops {

template struct MessagesKernels<MessagesKey{Precision::bf16, false}>;
template struct MessagesKernels<MessagesKey{Precision::bf16, true}>;

}  // namespace tessera::ops
