// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/sddmm/cuda/edges/kernel.cuh"
#include "ops/sddmm/cuda/edges/stream.cuh"

namespace tessera::ops {

template struct EdgesKernels<EdgesKey{Precision::bf16, true}>;
template struct EdgeStream<Precision::bf16>;

}  // namespace tessera::ops
