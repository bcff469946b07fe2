// SPDX-License-Identifier: Apache-2.0
// Also for: fp32 fp16
#include "ops/spmm/cuda/scatter/kernel.cuh"

namespace tessera::ops {

template struct ScatterKernels<ScatterKey{Precision::bf16, WeightFunction::product, true}>;
template struct ScatterKernels<ScatterKey{Precision::bf16, WeightFunction::product, false}>;
template struct ScatterKernels<ScatterKey{Precision::bf16, WeightFunction::gaussian, true}>;
template struct ScatterKernels<ScatterKey{Precision::bf16, WeightFunction::gaussian, false}>;

}  // namespace tessera::ops
